package lsp_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
)

// What is found in one file may depend on how far a call of another leads, also where that file was not worth reading before.
func TestFarNames(t *testing.T) {
	train := "import torch\nfrom helpers import advance\n\n\ndef train(model, loader, optimizer):\n    for step, batch in enumerate(loader):\n        loss = model(batch).mean() / 8\n        advance(loss)\n        torch.cuda.empty_cache()\n        optimizer.step()\n"
	folder := project(t, map[string]string{".git/HEAD": "x\n", "train.py": train, "helpers.py": "def advance(loss):\n    print(loss)\n"})
	c := start(t)
	c.initialize(folder, object{"textDocument": object{"diagnostic": object{}}})
	script, helpers := fileURI(filepath.Join(folder, "train.py")), fileURI(filepath.Join(folder, "helpers.py"))
	pull := func() []string {
		var r struct{ Items []diagnostic }
		if err := json.Unmarshal(c.request("textDocument/diagnostic", object{"textDocument": object{"uri": script}}), &r); err != nil {
			t.Fatal(err)
		}
		return codes(r.Items)
	}
	c.open(script, "python", train)
	before := pull()
	c.open(helpers, "python", "def advance(loss):\n    loss.backward()\n")
	after := pull()
	c.stop()
	fresh := start(t)
	write(t, filepath.Join(folder, "helpers.py"), "def advance(loss):\n    loss.backward()\n")
	fresh.initialize(folder, object{"textDocument": object{"diagnostic": object{}}})
	fresh.open(script, "python", train)
	c = fresh
	if want := pull(); !slices.Equal(after, want) || slices.Equal(before, want) {
		t.Errorf("before %v, after the change %v, from nothing %v", before, after, want)
	}
	c.stop()
}
