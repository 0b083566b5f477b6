package session

import "github.com/trainvet/trainvet/lint/check"

// Faults are what is wrong with settings files, by their absolute paths.
func (st *State) Faults() map[string][]check.SettingsFault {
	found := map[string][]check.SettingsFault{}
	for _, p := range st.projects {
		for _, fault := range p.settings.Faults() {
			known := false
			for _, other := range found[fault.Path] { // seen from an outer folder of the workspace as well
				known = known || other == fault
			}
			if !known {
				found[fault.Path] = append(found[fault.Path], fault)
			}
		}
	}
	return found
}

// TextAt is the text of a file as editors show it: of the open document, or what is on disk.
func (st *State) TextAt(absolute string) *Text {
	for _, doc := range st.docs {
		if doc.Path == absolute && doc.Book == "" {
			return doc.Text
		}
	}
	for _, p := range st.projects {
		if _, in := p.Name(absolute); !in && !p.settings.Uses(absolute) {
			continue
		}
		raw, err := p.read(absolute)
		if err != nil {
			break
		}
		return NewText(string(raw))
	}
	return NewText("")
}
