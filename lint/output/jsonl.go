package output

import (
	"bufio"
	"io"

	"github.com/trainvet/trainvet/lint/check"
)

// writeJSONLines prints the findings of the format json, each on a line of its own; nothing where there are none.
func writeJSONLines(to io.Writer, report *check.Report, _ Paint) error {
	out := bufio.NewWriter(to)
	for _, finding := range report.Findings {
		text, err := marshal(toJSON(report, finding))
		if err != nil {
			return err
		}
		out.Write(append(text, '\n'))
	}
	return out.Flush()
}
