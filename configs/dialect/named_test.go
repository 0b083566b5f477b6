package dialect_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
)

// told are the values that the cases of testdata/named show.
var told = []string{"batch.accumulation", "sharding", "dtype.compute", "dtype.params", "optimizer.type", "checkpointing.offload", "loss_kernel", "lora.rank",
	"quantization.kind", "offload.param", "fsdp.reshard_after_forward", "fsdp.no_sync"}

// TestNamed: what memory depends on reaches the plan, and what no estimate knows is named. Each file NAME is followed by NAME.plan: the
// values of told that are written or derived, and what is not modelled.
func TestNamed(t *testing.T) {
	const name = "testdata/named/cases.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string][]byte{}
	for _, f := range archive.Files {
		wanted[f.Name] = f.Data
	}
	var made []txtar.File
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, ".plan") {
			continue
		}
		file, trees := parse(t, f.Name, f.Data)
		var out bytes.Buffer
		for _, tree := range trees {
			d := dialect.Of(tree)
			if d == nil {
				fmt.Fprintln(&out, "none")
				continue
			}
			p := d.Plan(tree)
			fmt.Fprintln(&out, d.Name)
			for _, field := range told {
				fact, _ := plan.Lookup(&p, field)
				if value, known := fact.Any(); known && (fact.How() > plan.IsDefault || field == "lora.rank" || field == "fsdp.no_sync") {
					fmt.Fprintf(&out, "%s = %v %s\n", field, value, fact.How())
				}
			}
			for _, u := range p.Unmodelled {
				fmt.Fprintf(&out, "not modelled: %s :%d\n", u.What, file.Position(u.At.Span.Start).Line)
			}
		}
		made = append(made, f, txtar.File{Name: f.Name + ".plan", Data: out.Bytes()})
		if want := wanted[f.Name+".plan"]; !*update && !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s reads as\n%s\nwanted\n%s", f.Name, out.Bytes(), want)
		}
	}
	if *update {
		archive.Files = made
		if err := os.WriteFile(name, txtar.Format(archive), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
