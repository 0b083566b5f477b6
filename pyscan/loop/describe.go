package loop

import (
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Describe prints a loop, its events, guards and contexts, one line each, for people who ask why a verdict fell as it did.
func Describe(l *Loop) string {
	var out strings.Builder
	describe(&out, l, "")
	return out.String()
}

func describe(out *strings.Builder, l *Loop, indent string) {
	what := "function " + l.Scope.Qualified()
	switch node := l.Node.(type) {
	case *syntax.For:
		what = "for " + short(l.Scope.Module.File.Slice(node.Target.Span())) + " in " + short(l.Scope.Module.File.Slice(node.Iter.Span()))
	case *syntax.While:
		what = "while " + short(l.Scope.Module.File.Slice(node.Test.Span()))
	case nil:
		if l.Framework != "" {
			what += ", run by " + l.Framework
		}
	}
	fmt.Fprintf(out, "%s%d: %s%s", indent, l.Scope.Module.File.Line(l.At.Span.Start)+1, what, guardText(l.Guard))
	if l.Step {
		out.WriteString("  [once an optimizer step]")
	} else if l.Micro != 0 || l.Framework != "" {
		if l.Micro == 1 {
			out.WriteString("  [micro-batch loop]")
		} else if l.Micro == 0 {
			out.WriteString("  [perhaps a micro-batch]")
		}
	}
	out.WriteString("\n")
	for _, item := range l.Items {
		if item.Loop != nil {
			describe(out, item.Loop, indent+"  ")
			continue
		}
		e := item.Event
		fmt.Fprintf(out, "%s  %d: %s `%s`%s%s%s\n", indent, e.Scope.Module.File.Line(e.At.Span.Start)+1, e.Kind, short(e.Scope.Module.File.Slice(e.Node.Span())),
			guardText(e.Guard), contextText(e.Contexts), viaText(e))
	}
}

func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 60 {
		text = text[:57] + "..."
	}
	return text
}

func guardText(g Guard) string {
	var words []string
	for _, c := range g {
		word := condNames[c.Kind]
		if c.N != nil && c.Scope != nil {
			word += " " + short(c.Scope.Module.File.Slice(c.N.Span()))
		}
		if c.Tail {
			word += " or at the end"
		}
		if c.Negated {
			word = "not " + word
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return ""
	}
	return " if " + strings.Join(words, " and ")
}

var condNames = [...]string{"(unknown test)", "once in", "at the boundary", "first", "last of", "memory is short", "an exception", "one rank", "debugging", "evaluating", "training",
	"available", "(setting)", "overflow"}

func contextText(contexts []Context) string {
	var words []string
	for _, c := range contexts {
		word := [...]string{"", "no_grad", "autocast", "no_sync", "accumulate"}[c.Kind]
		if word != "" {
			words = append(words, word+guardText(c.Guard))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " in " + strings.Join(words, ", ")
}

func viaText(e *Event) string {
	if len(e.Via) == 0 {
		return ""
	}
	return fmt.Sprintf(" through %d calls", len(e.Via))
}
