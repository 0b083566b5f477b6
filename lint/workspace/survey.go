package workspace

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/lint/source"
)

// Survey gives work that may be done beside the check of a file: what that will ask of all the files of its project, which files name
// it. Of a snapshot of few files the names in the project (nameIndex) are part of it, where the file is Python: each file is then read once for
// both. Who asks for either from then on waits for it, and does not do it again.
func (s *Snapshot) Survey(ctx context.Context, name string) (work func()) {
	view := s.View(ctx).Forgetful()
	if view.kindOf(name).IsPython() {
		if in, root, ok := view.surveyed(name); ok {
			s.begin(in, root, func() (naming, python []string) { return s.toSurvey(in, root) }, func(map[string][]string, *nameIndex) {})
		}
	}
	return func() { view.NamedIn(name) }
}

// surveyed is where the files lie that name a file of few, and the root of the index of names of its project. False where a survey is not for
// them.
func (v *View) surveyed(name string) (in area, root string, ok bool) {
	if st := v.store; st.texts.max == 0 || !st.texts.few {
		return area{}, "", false
	}
	in, root = v.areas(name)[0], v.projectRoot(name)
	folder, _ := rootDepth(root)
	return in, root, folder == in.folder || in.folder == "." || inside(in.folder, folder)
}

// begin promises a survey of files, as toSurvey gives them; then is told what comes out.
func (s *Snapshot) begin(in area, root string, files func() (naming, python []string), then func(naming map[string][]string, index *nameIndex)) {
	s.store.promise(in.key(), root, sync.OnceValues(func() (map[string][]string, *nameIndex) {
		naming, index := s.survey(files())
		then(naming, index)
		return naming, index
	}))
}

// promise is where what is asked about an area and a root will be found, unless somebody has begun to find that out.
func (st *store) promise(area, root string, both func() (map[string][]string, *nameIndex)) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.naming[area] != nil || st.indices[root] != nil {
		return false
	}
	st.naming[area] = func() map[string][]string { naming, _ := both(); return naming }
	st.indices[root] = func() *nameIndex { _, index := both(); return index }
	return true
}

// toSurvey are the files of an area that may name settings, and the Python files below a root, both sorted.
func (s *Snapshot) toSurvey(in area, root string) (naming, python []string) {
	s.listAll(in.folder, in.depth)
	naming, python = s.mayNames(in), s.pythonFiles(rootDepth(root))
	slices.Sort(naming)
	return naming, python
}

// surveyFiles are the files that a survey reads, sorted.
func surveyFiles(naming, python []string) []string {
	files := slices.Concat(naming, python)
	slices.Sort(files)
	return slices.Compact(files)
}

// survey makes indexNames and indexFiles at once.
func (s *Snapshot) survey(naming, python []string) (map[string][]string, *nameIndex) {
	files := surveyFiles(naming, python)
	bases := make([][]string, len(naming))
	ins := newIndexers(len(files))
	s.store.glanceAll(s.fs, files, func(reader, n int, file *source.File) {
		if i, is := slices.BinarySearch(naming, files[n]); is {
			bases[i] = basesIn(file)
		}
		if i, is := slices.BinarySearch(python, files[n]); is {
			ins[reader].take(int32(i), file)
		}
	})
	return namesOf(naming, bases), joined(python, ins)
}

// listAll looks into a folder and so many levels below it, from both ends: most of the time is the system's, which works for two as fast as for
// one.
func (s *Snapshot) listAll(folder string, deepest int) {
	deepest = below(folder, deepest)
	var done sync.Map // folders that were walked
	var walk func(folder string, depth int)
	walk = func(folder string, depth int) {
		for _, inner := range s.folders(folder) {
			if depth < deepest {
				walk(inner, depth+1)
			}
		}
		done.Store(folder, true)
	}
	var scout func(folder string, depth int) (on bool)
	scout = func(folder string, depth int) bool {
		for _, inner := range slices.Backward(s.folders(folder)) {
			if _, met := done.Load(inner); met || depth < deepest && !scout(inner, depth+1) {
				return false
			}
		}
		return true
	}
	var both crew
	both.Go(func() { scout(folder, 0) })
	walk(folder, 0)
	both.Wait()
}

// folders are those in a folder, in order, but for hidden ones.
func (s *Snapshot) folders(folder string) (list []string) {
	for _, entry := range s.store.entries(s.fs, folder) {
		if entry.Kind == Folder && !strings.HasPrefix(entry.Name, ".") {
			list = append(list, source.Join(folder, entry.Name))
		}
	}
	return list
}
