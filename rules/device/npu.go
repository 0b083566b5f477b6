package device

import (
	"bytes"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// onNPU reports whether a file is for Ascend NPUs alone and CUDA names in it mean CUDA: it imports torch_npu or moves tensors to
// the NPU, on no condition, or every file that imports it directly does; and nothing around it hands the names of CUDA to the NPU.
func onNPU(pass *lint.Pass, module *pyscan.Module) bool {
	name := module.File.Path
	if workspace.IsTest(name) || !namesNPU(module) || !forNPU(pass, module) && !importersForNPU(pass, module) {
		return false
	}
	if pass.TransfersToNPU(name) {
		return false
	}
	return !pass.MayTransfer(name) || pass.Started(name) == pyscan.Yes
}

func importersForNPU(pass *lint.Pass, module *pyscan.Module) bool {
	return pass.ImportedOnlyBy(module.File.Path, func(text []byte) bool { return bytes.Contains(text, []byte("npu")) }, func(m *pyscan.Module) bool { return forNPU(pass, m) })
}

// namesNPU reports whether a file holds the word npu, as a name or in one: torch_npu, is_npu_available, and not input or Input.
func namesNPU(module *pyscan.Module) bool {
	text := module.File.Text
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte("npu"))
		if i < 0 {
			return false
		}
		at += i
		if at == 0 || text[at-1]|0x20 < 'a' || text[at-1]|0x20 > 'z' {
			return true
		}
		at += len("npu")
	}
}

// forNPU reports whether a file names the NPU where no condition decides about it.
func forNPU(pass *lint.Pass, module *pyscan.Module) bool {
	if !namesNPU(module) {
		return false
	}
	for _, i := range module.Imports {
		if i.Level == 0 && (i.Module == "torch_npu" || strings.HasPrefix(i.Module, "torch_npu.")) && len(workspace.Around(i.Scope, i.Node)) <= 1 && i.Scope.Kind == pyscan.ModuleScope {
			return true
		}
	}
	for _, site := range module.Calls {
		last := pyscan.LastName(site.Func)
		if last != "npu" && !strings.HasPrefix(last, "set_device") {
			continue
		}
		_, method := site.Func.(*syntax.Attribute)
		named := method && last == "npu" && len(site.Args) == 0 || strings.HasPrefix(pass.Library(site.Scope, nil, site.Func), "torch.npu.set_device")
		if named && condition(pass, site.Scope, site.Call) == always {
			return true
		}
	}
	return false
}

// when says on what a node's running depends.
type when uint8

const (
	always   when = iota
	sometime      // a condition that says nothing of devices
	byDevice      // a test of the device: another one has its own branch
)

// deviceWords are what tests of the device speak of.
var deviceWords = []string{"cuda", "npu", "device", "is_available", "accelerator", "backend", "gpu", "platform", "ascend", "xpu", "rocm"}

// condition says on what it depends that a node of a scope runs: the tests around it, and those before it that leave.
func condition(pass *lint.Pass, scope *pyscan.Scope, node syntax.Node) when {
	answer := always
	for s := scope; s != nil; s = s.Parent {
		if s.Kind == pyscan.LambdaScope {
			return byDevice // a table of what to call, by device
		}
		if s.Kind == pyscan.FuncScope && s.Name == "cuda" && s.Parent != nil && s.Parent.Kind == pyscan.ClassScope {
			return byDevice // module.cuda(), which who has an NPU does not call
		}
		body := s.Body()
		around := workspace.Around(s, node)
		for depth, stmt := range around {
			for _, before := range body {
				if before == stmt {
					break
				}
				if test, ok := before.(*syntax.If); ok && leaves(test.Body) {
					answer = max(answer, about(pass, test.Test))
				}
			}
			body = nil
			switch stmt := stmt.(type) {
			case *syntax.If:
				if stmt.Test.Span().Contains(node.Span()) {
					return byDevice
				}
				if !mainTest(stmt) {
					answer = max(answer, about(pass, stmt.Test))
				}
				body = stmt.Body
				if len(stmt.OrElse) > 0 && depth+1 < len(around) && holds(stmt.OrElse, around[depth+1]) {
					body = stmt.OrElse
				}
			case *syntax.For:
				body = stmt.Body
			case *syntax.While:
				body = stmt.Body
			case *syntax.With:
				body = stmt.Body
			case *syntax.Match:
				answer = max(answer, about(pass, stmt.Subject))
			case *syntax.Try:
				return byDevice // what fails there is meant to
			case *syntax.Assert:
				return byDevice
			}
		}
		if len(around) > 0 {
			answer = max(answer, inside(pass, around[len(around)-1], node))
		}
	}
	return answer
}

func holds(block []syntax.Stmt, stmt syntax.Stmt) bool {
	for _, one := range block {
		if one == stmt {
			return true
		}
	}
	return false
}

// inside looks at conditional expressions and tables within one statement.
func inside(pass *lint.Pass, stmt syntax.Stmt, node syntax.Node) when {
	answer := always
	syntax.Inspect(stmt, func(n syntax.Node) bool {
		if !n.Span().Contains(node.Span()) {
			return false
		}
		switch n := n.(type) {
		case *syntax.IfExp:
			answer = max(answer, max(sometime, about(pass, n.Test)))
		case *syntax.BoolOp:
			answer = byDevice // torch.cuda.is_available() and torch.cuda...
		case *syntax.Compare, *syntax.Dict, *syntax.JoinedStr:
			answer = byDevice
		}
		return true
	})
	return answer
}

func about(pass *lint.Pass, test syntax.Expr) when {
	if test == nil {
		return sometime
	}
	if workspace.NamesAny(test, deviceWords...) {
		return byDevice
	}
	return sometime
}

func mainTest(stmt *syntax.If) bool {
	c, ok := stmt.Test.(*syntax.Compare)
	return ok && pyscan.Path(c.Left) == "__name__"
}

func leaves(body []syntax.Stmt) bool {
	if len(body) == 0 {
		return false
	}
	switch body[len(body)-1].(type) {
	case *syntax.Return, *syntax.Raise, *syntax.Continue, *syntax.Break:
		return true
	}
	return false
}

// workspaceAround is the innermost statement of a scope that holds a node, or nil.
func workspaceAround(scope *pyscan.Scope, node syntax.Node) syntax.Stmt {
	if around := workspace.Around(scope, node); len(around) > 0 {
		return around[len(around)-1]
	}
	return nil
}
