package workspace

import (
	"slices"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
)

// dataclassReaders are the methods of HfArgumentParser and TrlParser that read settings into dataclasses, with the
// argument that says what becomes of a key that none of them has, its position, and its value by which such a key
// does not stop the program.
var dataclassReaders = map[string][]struct {
	argument string
	position int
	lenient  bool
}{
	"parse_dict":            {{"allow_extra_keys", 1, true}},
	"parse_json_file":       {{"allow_extra_keys", 1, true}},
	"parse_yaml_file":       {{"allow_extra_keys", 1, true}},
	"parse_args_and_config": {{"return_remaining_strings", 1, true}, {"fail_with_unknown_args", 2, false}},
}

// KeyReaders is what is known of the programs that read a config into dataclasses.
type KeyReaders struct {
	Known   bool         // some are
	Lenient pyscan.Truth // whether they ignore keys that no dataclass has; Maybe where they differ or it is not known
}

// KeyReaders looks for the readers of a config: in the programs that name it or are started with it, and in what
// those import; where there are none, in the whole project.
func (v *View) KeyReaders(file string) KeyReaders {
	var programs []string
	for _, name := range v.naming(file) {
		if source.KindOf(name, nil).IsPython() {
			programs = append(programs, name)
			continue
		}
		for _, l := range v.commandLinks(name) {
			if l.program != "" && slices.Contains(l.files, file) {
				programs = append(programs, l.program)
			}
		}
	}
	var files []string
	for _, program := range programs {
		for _, one := range v.Closure(program) {
			if !slices.Contains(files, one) {
				files = append(files, one)
			}
		}
	}
	readers := v.keyReadersIn(files)
	if !readers.Known {
		files = files[:0]
		for method := range dataclassReaders {
			for _, one := range v.Mentioning(file, method) {
				if !slices.Contains(files, one) {
					files = append(files, one)
				}
			}
		}
		readers = v.keyReadersIn(files)
	}
	return readers
}

func (v *View) keyReadersIn(files []string) (readers KeyReaders) {
	for _, file := range files {
		m := v.Module(file)
		if m == nil || len(files) > maxClosure {
			continue
		}
		for _, site := range m.Calls {
			arguments := dataclassReaders[pyscan.LastName(site.Call.Func)]
			if arguments == nil {
				continue
			}
			this := pyscan.No
			for _, a := range arguments {
				value := v.Arg(site.Scope, nil, site.Call, a.argument, a.position)
				if value == nil {
					continue
				}
				if c, known := v.Constant(v.Expand(value)); !known {
					this = pyscan.Maybe
				} else if c.Truth() == a.lenient {
					this = pyscan.Yes
					break
				}
			}
			if readers.Known && this != readers.Lenient {
				this = pyscan.Maybe
			}
			readers.Known, readers.Lenient = true, this
		}
	}
	return readers
}
