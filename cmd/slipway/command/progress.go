package command

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// minNoted is the minimum start duration at which a component gets its own line if the output is
// not a terminal.
const minNoted = time.Second

// maxFailures is the maximum number of failed components that a terminal shows for each process.
const maxFailures = 3

// progress shows how the components start. On a terminal, it draws a table of the processes, and
// redraws the table in place. Otherwise, it prints a line for each process that becomes ready, and
// for each component that starts slowly or fails.
type progress struct {
	out      io.Writer
	terminal bool
	start    time.Time
	lines    int                  // number of lines of the table on the terminal
	printed  map[[2]string]string // last line printed, by process and component
}

func newProgress(out *os.File, start time.Time) *progress {
	return &progress{out: out, terminal: term.IsTerminal(int(out.Fd())), start: start, printed: map[[2]string]string{}}
}

// elapsed formats the time since the start in seconds, with one decimal place.
func (p *progress) elapsed() string { return fmt.Sprintf("%5.1fs", time.Since(p.start).Seconds()) }

// printf prints a line above the table. The next call of show redraws the table.
func (p *progress) printf(format string, values ...any) {
	p.erase()
	fmt.Fprintf(p.out, "%s  %s\n", p.elapsed(), fmt.Sprintf(format, values...))
}

// show prints a status, or the changes since the last status if the output is not a terminal.
func (p *progress) show(status supervisor.Status) {
	if p.terminal {
		p.redraw(status)
		return
	}
	for _, process := range status.Processes {
		for _, c := range process.Components {
			switch {
			case c.State == component.Failed:
				p.once(process.Name, c.Name, "failed: "+c.Error)
			case c.State == component.Ready && c.StartSeconds >= minNoted.Seconds():
				p.once(process.Name, c.Name, fmt.Sprintf("ready after %.1fs", c.StartSeconds))
			}
		}
		if process.State == component.Ready {
			p.once(process.Name, process.Name, countStates(process.Components))
		}
	}
}

// once prints a line about a process or one of its components, unless the last printed line about
// it is the same.
func (p *progress) once(process, name, text string) {
	line := fmt.Sprintf("%-16s %s", name, text)
	if key := [2]string{process, name}; p.printed[key] != line {
		p.printed[key] = line
		fmt.Fprintf(p.out, "%s  %s\n", p.elapsed(), line)
	}
}

func (p *progress) erase() {
	if p.lines > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.lines)
		p.lines = 0
	}
}

// keep keeps the table on the terminal, so that the next line is printed below it.
func (p *progress) keep() { p.lines = 0 }

func (p *progress) redraw(status supervisor.Status) {
	var table []string
	for _, process := range status.Processes {
		table = append(table, processLine(process, time.Now()))
		failures := 0
		for _, c := range process.Components {
			if c.State == component.Failed && failures < maxFailures {
				failures++
				table = append(table, "    ✗ "+clip(c.Name+" failed: "+c.Error, 72))
			}
		}
	}
	p.erase()
	for _, line := range table {
		fmt.Fprintln(p.out, line)
	}
	p.lines = len(table)
}

// processLine returns the line about a process on a terminal: how many of its components are ready,
// and which components have been starting for the longest time.
func processLine(process supervisor.ProcessStatus, now time.Time) string {
	if process.State == component.Ready {
		return fmt.Sprintf("  ✓ %-16s %s", process.Name, countStates(process.Components))
	}
	mark, done := "·", 0
	var starting []supervisor.ComponentStatus
	for _, c := range process.Components {
		switch c.State {
		case component.Ready, component.Standby, component.Stopped:
			done++
		case component.Starting:
			mark, starting = "▸", append(starting, c)
		}
	}
	slices.SortStableFunc(starting, func(a, b supervisor.ComponentStatus) int { return a.Since.Compare(b.Since) })
	var names []string
	for _, c := range starting {
		names = append(names, fmt.Sprintf("%s %.1fs", c.Name, now.Sub(c.Since).Seconds()))
	}
	line := fmt.Sprintf("%2d of %d ready", done, len(process.Components))
	if len(names) > 0 {
		line += ", starting " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("  %s %-16s %s", mark, process.Name, clip(line, 58))
}

// countStates returns the number of components in each state, such as "41 ready, 2 standby". It
// returns "" for a process without components.
func countStates(components []supervisor.ComponentStatus) string {
	order := []component.State{component.Ready, component.Standby, component.Starting, component.Waiting, component.Failed, component.Stopped}
	counts := map[component.State]int{}
	for _, c := range components {
		counts[c.State]++
	}
	var texts []string
	for _, state := range order {
		if counts[state] > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	return strings.Join(texts, ", ")
}

// clip returns the first line of a text, truncated to width characters.
func clip(text string, width int) string {
	text, _, _ = strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}
