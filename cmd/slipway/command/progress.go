package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// progress shows how the components start. On a terminal, it is a table that is redrawn in place.
// Otherwise, it prints a line for each component that becomes ready or fails.
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

// show prints a status.
func (p *progress) show(status supervisor.Status) {
	if p.terminal {
		p.redraw(status)
		return
	}
	for _, process := range status.Processes {
		for _, c := range process.Components {
			line := ""
			switch c.State {
			case component.Ready:
				line = fmt.Sprintf("%-16s ready after %.1fs", c.Name, c.StartSeconds)
			case component.Standby:
				line = fmt.Sprintf("%-16s on standby: another master runs it", c.Name)
			case component.Failed:
				line = fmt.Sprintf("%-16s failed: %s", c.Name, c.Error)
			default:
				continue
			}
			if key := [2]string{process.Name, c.Name}; p.printed[key] != line {
				p.printed[key] = line
				fmt.Fprintf(p.out, "%s  %s\n", p.elapsed(), line)
			}
		}
	}
}

func (p *progress) erase() {
	if p.lines > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.lines)
		p.lines = 0
	}
}

func (p *progress) redraw(status supervisor.Status) {
	var table strings.Builder
	lines := 0
	for _, process := range status.Processes {
		for _, c := range process.Components {
			mark, detail := "·", "waits"
			switch c.State {
			case component.Starting:
				mark, detail = "▸", fmt.Sprintf("starts  %5.1fs", time.Since(c.Since).Seconds())
			case component.Ready:
				mark, detail = "✓", fmt.Sprintf("ready   %5.1fs", c.StartSeconds)
			case component.Standby:
				mark, detail = "✓", "on standby"
			case component.Failed:
				mark, detail = "✗", "failed  "+c.Error
			case component.Stopped:
				mark, detail = "·", "stopped"
			}
			fmt.Fprintf(&table, "  %s %-16s %s\n", mark, c.Name, clip(detail, 76))
			lines++
		}
	}
	p.erase()
	fmt.Fprint(p.out, table.String())
	p.lines = lines
}

// clip returns the first line of a text, truncated to width characters.
func clip(text string, width int) string {
	text, _, _ = strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}
