package output

import "github.com/trainvet/trainvet/lint/check"

const xmlHeader = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

// fileFindings are the findings of one file.
type fileFindings struct {
	path     string
	findings []check.Finding
}

// byFile groups the findings of a report, with files in the order of their first findings.
func byFile(report *check.Report) (files []fileFindings) {
	number := map[string]int{}
	for _, finding := range report.Findings {
		i, known := number[finding.At.Path]
		if !known {
			i = len(files)
			number[finding.At.Path] = i
			files = append(files, fileFindings{path: finding.At.Path})
		}
		files[i].findings = append(files[i].findings, finding)
	}
	return files
}
