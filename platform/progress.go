package platform

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// progress shows how the parts come up: on a terminal a table that is redrawn in place, elsewhere one
// line for each part that becomes ready or fails.
type progress struct {
	out      io.Writer
	terminal bool
	began    time.Time
	drawn    int               // lines on the terminal
	said     map[string]string // what the log has about each part
}

func newProgress(out *os.File, began time.Time) *progress {
	return &progress{out: out, terminal: term.IsTerminal(int(out.Fd())), began: began, said: map[string]string{}}
}

// elapsed is the time since the start, to a tenth of a second.
func (p *progress) elapsed() string { return fmt.Sprintf("%5.1fs", time.Since(p.began).Seconds()) }

// say prints a line of its own above the table.
func (p *progress) say(format string, values ...any) {
	p.erase()
	fmt.Fprintf(p.out, "%s  %s\n", p.elapsed(), fmt.Sprintf(format, values...))
}

// show brings the display up to date.
func (p *progress) show(status Status) {
	if p.terminal {
		p.redraw(status)
		return
	}
	for _, process := range status.Processes {
		for _, part := range process.Parts {
			line := ""
			switch part.State {
			case Ready:
				line = fmt.Sprintf("%-16s ready after %.1fs", part.Name, part.StartSeconds)
			case Failed:
				line = fmt.Sprintf("%-16s failed: %s", part.Name, part.Error)
			default:
				continue
			}
			if p.said[part.Name] != line {
				p.said[part.Name] = line
				fmt.Fprintf(p.out, "%s  %s\n", p.elapsed(), line)
			}
		}
	}
}

func (p *progress) erase() {
	if p.drawn > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.drawn)
		p.drawn = 0
	}
}

func (p *progress) redraw(status Status) {
	var table strings.Builder
	lines := 0
	for _, process := range status.Processes {
		for _, part := range process.Parts {
			mark, detail := "·", "waits"
			switch part.State {
			case Starting:
				mark, detail = "▸", fmt.Sprintf("starts  %5.1fs", time.Since(part.Since).Seconds())
			case Ready:
				mark, detail = "✓", fmt.Sprintf("ready   %5.1fs", part.StartSeconds)
			case Failed:
				mark, detail = "✗", "failed  "+part.Error
			case Stopped:
				mark, detail = "·", "stopped"
			}
			fmt.Fprintf(&table, "  %s %-16s %s\n", mark, part.Name, clip(detail, 76))
			lines++
		}
	}
	p.erase()
	fmt.Fprint(p.out, table.String())
	p.drawn = lines
}

// clip shortens a text to one line of at most width characters.
func clip(text string, width int) string {
	text, _, _ = strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}
