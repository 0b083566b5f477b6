package plan

// Conflict is a value that several files write differently. Values stand in the order of the plans; the first of the
// strongest is the one that was taken.
type Conflict struct {
	Name   string
	Values []Fact
}

// Merge is the plan of a run whose files say parts of it. For each value the strongest claim wins (flag, written, derived,
// default), and of equal claims the first. Places of files that agree are collected. A conflict is a value which two files
// write differently; that a flag or a file overrides something weaker is not one. What one part cannot model, the run cannot.
func Merge(parts ...*Plan) (Plan, []Conflict) {
	var merged Plan
	var conflicts []Conflict
	for _, f := range fields {
		into := f.at(&merged)
		for _, part := range parts {
			from := f.at(part)
			switch {
			case from.How() > into.How():
				into.take(from)
			case from.How() == into.How() && from.Known() && !into.differs(from):
				into.addFrom(from)
			}
		}
		if c := conflict(f, parts); c != nil {
			conflicts = append(conflicts, *c)
		}
	}
	for _, part := range parts {
		for _, u := range part.Unmodelled {
			merged.CannotModel(u.What, u.At)
		}
	}
	return merged, conflicts
}

func conflict(f field, parts []*Plan) *Conflict {
	var written []slot
	differs := false
	for _, part := range parts {
		if s := f.at(part); s.How() == IsWritten {
			differs = differs || len(written) > 0 && written[0].differs(s)
			written = append(written, s)
		}
	}
	if !differs {
		return nil
	}
	c := &Conflict{Name: f.name}
	for _, s := range written {
		c.Values = append(c.Values, s.fact())
	}
	return c
}
