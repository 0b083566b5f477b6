package source

// maxWork bounds what is done for the parts of one file, bytes: their number, times the text that may have to be walked for each.
const maxWork = 32 << 20

// Affordable is how many parts of a file (loops, calls, assignments) are looked at where each may take a walk through all of it. Files that
// people write have a tenth as many.
func (f *File) Affordable() int { return max(16, maxWork/max(1, len(f.Text))) }
