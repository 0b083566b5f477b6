package config

import (
	"strconv"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
)

// launcherText says what `accelerate launch` does with a number in quotes. Its loader converts nothing; known is
// false for keys of other frameworks. What stands in a section reaches the program as text of its environment and is
// read there. Of what stands at the top the launcher uses some itself: it compares num_machines with 1 and opens
// main_process_port, and with several machines it divides num_processes by their number; a launch on one machine
// hands num_processes and machine_rank on as text (accelerate 1.15, commands/launch.py and utils/launch.py).
func launcherText(s *setting, text string) (f *fault, known bool) {
	if s.part.Dialect != dialect.Accelerate {
		return nil, false
	}
	if s.section != "" {
		if _, err := strconv.Atoi(text); err != nil && !s.key.Is("float") {
			return refused("is the text %q, wanted %s: accelerate reads it with int(), which raises ValueError",
				text, wanted(s.key)), true
		}
		return nil, true
	}
	use := ""
	switch s.name {
	case "machine_rank":
		return nil, true
	case "num_processes":
		machines, _ := numberAt(s.part, "num_machines")
		kind := textAt(s.part, "distributed_type")
		switch onCPU, _ := switchAt(s.part, "use_cpu"); {
		case machines > 1:
			use = "divides it by num_machines"
		case kind == "no" || kind == "multi_cpu" || onCPU:
			use = "compares it with a number"
		default:
			return nil, true
		}
	case "num_machines":
		use = "compares it with a number"
	case "main_process_port":
		use = "tries to open the port"
	default:
		return nil, false
	}
	f = refused("is the text %q, wanted %s: accelerate launch %s and ends in TypeError", text, wanted(s.key), use)
	f.instead = configs.JSONNumber(text)
	return f, true
}
