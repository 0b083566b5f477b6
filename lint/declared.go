package lint

// CustomFamily is the family of the rules that settings declare.
const CustomFamily = "custom"

// Declared is a rule as settings declare it: what it looks at (one of Key, Value and Call), and what holds there.
type Declared struct {
	Name, Message, Help string
	Severity            Severity

	Key     string // dotted path of a key in configs; * stands for any key, or any element of a list
	Value   string // dotted name of a value of the training plan (batch.micro), whatever files say it
	Call    string // dotted name of a function or class that Python calls
	Keyword string // of the call: the argument in question; "": the call itself

	Position  int64 // where the argument stands when it is given without its name, from 0; -1: never
	Required  bool
	Forbidden bool
	Min, Max  *float64
	OneOf     []any  // string, bool, int64 or float64
	NotOneOf  []any  // the same
	Matches   string // regular expression (RE2) that the text must match somewhere
}

// NewDeclared is a declaration that demands nothing.
func NewDeclared() Declared { return Declared{Severity: Warning, Position: -1} }
