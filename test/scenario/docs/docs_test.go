// Package docs proves that the tutorials are true: it runs their commands in order on a machine
// without a cluster, and compares the output. Source: docs/tutorials.
//
// A block of the language `console` contains commands, each after `$ `, followed by their output.
// In the output, `...` matches any text within a line; alone on a line, it matches any number of
// lines. A command must succeed unless the page shows its whole output, such as an error. A command
// that ends in a backslash continues on the next line. The data directory of the test replaces the
// default one.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// pages are the pages that the test runs: the README, then the tutorials in reading order.
var pages = []string{
	"README.md", "docs/tutorials/install.md", "docs/tutorials/first-application.md", "docs/tutorials/build-from-source.md",
	"docs/tutorials/flexvolume.md", "docs/tutorials/uninstall.md",
}

func TestTutorialsPrintDocumentedOutput(t *testing.T) {
	cluster := kit.New(t, kit.Options{})
	for _, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			text, err := os.ReadFile(cluster.RepositoryFile(page))
			if err != nil {
				t.Fatal(err)
			}
			steps := read(strings.ReplaceAll(string(text), "/var/lib/slipway/", cluster.DataDir+"/"))
			if len(steps) == 0 {
				t.Fatal("the page has no command")
			}
			shell := cluster.Shell(t, cluster.RepositoryFile())
			for _, step := range steps {
				output, code, err := shell.Run(step.command)
				if err != nil {
					t.Fatal(err)
				}
				if !step.matches(output) || code != 0 && !step.isComplete() {
					t.Fatalf("$ %s\nexit code %d\n--- printed:\n%s--- the page says:\n%s", step.command, code, output, strings.Join(step.output, "\n"))
				}
			}
		})
	}
}

func TestEveryTutorialIsRun(t *testing.T) {
	tutorials, err := filepath.Glob("../../../docs/tutorials/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tutorials {
		if page := strings.TrimPrefix(path, "../../../"); !slices.Contains(pages, page) {
			t.Errorf("%s is not among the pages that TestTutorialsPrintDocumentedOutput runs", page)
		}
	}
}

// step is a command of a page.
type step struct {
	command string
	output  []string // lines; nil if the page doesn't show them
}

// read returns the commands of a page.
func read(page string) (steps []step) {
	within, continued := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch last := len(steps) - 1; {
		case strings.HasPrefix(line, "```"):
			within, continued = line == "```console", false
		case !within:
		case isCommand:
			steps = append(steps, step{command: command})
			continued = strings.HasSuffix(command, "\\")
		case continued:
			steps[last].command += "\n" + line
			continued = strings.HasSuffix(line, "\\")
		case last >= 0:
			steps[last].output = append(steps[last].output, line)
		}
	}
	return steps
}

// isComplete reports whether the page shows the whole output of the command.
func (s step) isComplete() bool {
	return s.output != nil && !strings.Contains(strings.Join(s.output, "\n"), "...")
}

// matches reports whether the output of a command matches the page. The number of spaces between
// columns can differ.
func (s step) matches(output string) bool {
	if s.output == nil {
		return true
	}
	pattern := &strings.Builder{}
	pattern.WriteString(`\A`)
	for _, line := range s.output {
		if line == "..." {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		quoted := strings.ReplaceAll(regexp.QuoteMeta(strings.Join(strings.Fields(line), " ")), `\.\.\.`, `.*`)
		pattern.WriteString(`\s*` + strings.ReplaceAll(quoted, " ", `\s+`) + `[ \t]*\n`)
	}
	pattern.WriteString(`\s*\z`)
	return regexp.MustCompile(pattern.String()).MatchString(output)
}
