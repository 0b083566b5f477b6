// Package rules lists all rules of trainvet. Each lives in rules/FAMILY as three files: NAME.go is the check, NAME.md what
// `trainvet rule NAME` says, and NAME.txtar the cases it is held to. `go run ./cmd/gen/newrule.go FAMILY/NAME` makes them.
//
// # Policy
//
// A rule finds a mistake that costs something at run time: a wrong result, a crash, a hang, memory or time. It has no opinion
// on style, and says nothing that needs no reading of the run.
//
// Severities: an error is a wrong result, a crash or a hang; a warning is probably wrong, or costs much; an info is advice
// and never fails a run by default. A rule may be an error or a warning by default only if at least 90 % of its findings in
// real code are true; else it is an info, or in the group "strict", which is off by default. An error needs a Yes of whatever
// the rule asks; a Maybe is silent, or an info.
//
// The name says the bad thing in kebab-case, so that "allow NAME" reads well, and is never used again for something else. The
// message says what is wrong and what will happen, in one line; the fix, or a word of help, says what to do. A fix is safe
// when the run stays what its author wrote, minus the fault; a guess about what was meant is unsafe.
package rules

//go:generate go run ../cmd/gen/list.go
//go:generate go run ../cmd/gen/docs.go
