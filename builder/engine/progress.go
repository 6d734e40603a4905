package engine

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/moby/buildkit/client"
	"github.com/opencontainers/go-digest"
)

// printer prints the build log: the name of each step when it starts, and its output.
type printer struct {
	out     io.Writer
	verbose bool
}

// print prints the events from status until the channel is closed.
func (p printer) print(status <-chan *client.SolveStatus) {
	started := map[digest.Digest]bool{}
	cachedSteps := map[digest.Digest]bool{}
	for s := range status {
		for _, v := range s.Vertexes {
			line, visible := p.step(v.Name)
			if v.Started != nil && !started[v.Digest] && visible {
				fmt.Fprintln(p.out, line)
			}
			started[v.Digest] = started[v.Digest] || v.Started != nil
			if v.Cached && !cachedSteps[v.Digest] && visible && !strings.Contains(line, " : FROM ") {
				fmt.Fprintln(p.out, " ---> Using cache")
			}
			cachedSteps[v.Digest] = cachedSteps[v.Digest] || v.Cached
		}
		for _, l := range s.Logs {
			_, _ = p.out.Write(l.Data) // there is no place to report a write error
		}
		for _, w := range s.Warnings {
			fmt.Fprintf(p.out, "warning: %s\n", w.Short)
		}
	}
}

// stepName matches the Dockerfile frontend's step names: [2/5] RUN make, [linux/amd64 build 1/3]
// FROM base.
var stepName = regexp.MustCompile(`^\[(?:([^\]]*) )?(\d+/\d+)\] (.*)$`)

// step returns a step's log line, and whether the step is visible.
func (p printer) step(name string) (line string, visible bool) {
	if parts := stepName.FindStringSubmatch(name); parts != nil {
		if parts[1] != "" {
			parts[1] = " (" + parts[1] + ")"
		}
		return fmt.Sprintf("Step %s%s : %s", parts[2], parts[1], parts[3]), true
	}
	if strings.HasPrefix(name, "[") || strings.HasPrefix(name, "exporting ") || strings.HasPrefix(name, "importing ") {
		return name, p.verbose
	}
	return name, p.verbose || !strings.Contains(name, "://")
}
