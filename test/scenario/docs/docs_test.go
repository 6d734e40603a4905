// Package docs tests that the tutorials are correct. It runs their commands in order on a machine
// without a cluster, and compares the output. Source: docs/tutorials.
//
// A `console` code block contains commands, each after `$ `, followed by their output. In the
// output, `...` matches any text within a line. A line that consists only of `...` matches any
// number of lines. A command is allowed to fail only if the page shows its complete output, for
// example an error message. A command that ends in a backslash continues on the next line. The
// prompts `node$ `, `second$ ` and `third$ ` belong to other machines, and `master$ ` and `first$ `
// mean the same as `$ `. The test replaces the page's data directory and addresses with its own
// values. It replaces the page's tokens with the tokens that the last `slipway token create`
// printed. Instead of the command `poweroff`, it kills all processes of the host.
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

// pages contains the pages that the test runs: the README, and then the tutorials in reading order.
var pages = []string{
	"README.md", "docs/tutorials/install.md", "docs/tutorials/first-application.md", "docs/tutorials/build-from-source.md",
	"docs/tutorials/flexvolume.md", "docs/tutorials/second-host.md", "docs/tutorials/uninstall.md",
}

func TestTutorialsPrintDocumentedOutput(t *testing.T) {
	cluster := kit.New(t, kit.Options{Segment: true})
	machines := map[string]*kit.Host{"": cluster, "node": cluster.NewHost("second", kit.Options{})}
	for _, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) { run(t, page, machines) })
	}
}

// mastersPage needs three machines without a cluster.
const mastersPage = "docs/tutorials/three-masters.md"

func TestTutorialOfThreeMasters(t *testing.T) {
	first := kit.New(t, kit.Options{Segment: true, Node: "nodeName: first"})
	run(t, mastersPage, map[string]*kit.Host{
		"": first, "second": first.NewHost("second", kit.Options{}), "third": first.NewHost("third", kit.Options{}),
	})
}

// run runs the commands of a page. machines maps the hosts of steps to machines.
func run(t *testing.T, page string, machines map[string]*kit.Host) {
	cluster := machines[""]
	text, err := os.ReadFile(cluster.RepositoryFile(page))
	if err != nil {
		t.Fatal(err)
	}
	steps := read(strings.ReplaceAll(string(text), "/var/lib/slipway/", cluster.DataDir+"/"))
	if len(steps) == 0 {
		t.Fatal("the page has no command")
	}
	values := []string{"192.0.2.10", cluster.Address.String()}
	for host, address := range map[string]string{"second": "192.0.2.11", "third": "192.0.2.12"} {
		if machine := machines[host]; machine != nil {
			values = append(values, address, machine.Address.String())
		}
	}
	shells := map[string]*kit.Shell{}
	var tokens []string
	for _, step := range steps {
		machine := machines[step.host]
		if step.command == "poweroff" {
			machine.For(t).KillEverything()
			continue
		}
		if shells[step.host] == nil {
			shells[step.host] = machine.Shell(t, cluster.RepositoryFile())
		}
		output, code, err := shells[step.host].Run(strings.NewReplacer(append(values, tokens...)...).Replace(step.command))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(step.command, "slipway token create") {
			tokens = tokenValues(output)
		}
		if !step.matches(output) || code != 0 && !step.isComplete() {
			t.Fatalf("$ %s\nexit code %d\n--- printed:\n%s--- the page contains:\n%s", step.command, code, output, strings.Join(step.output, "\n"))
		}
	}
}

// tokenValues maps the tokens of a page, as arguments of strings.NewReplacer, to the tokens that a
// command printed.
func tokenValues(output string) (values []string) {
	tokens := strings.Fields(output)
	for i, name := range []string{"sw1.TOKEN", "sw1.OTHER"} {
		if i < len(tokens) {
			values = append(values, name, tokens[i])
		}
	}
	return values
}

func TestEveryTutorialIsRun(t *testing.T) {
	tutorials, err := filepath.Glob("../../../docs/tutorials/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tutorials {
		if page := strings.TrimPrefix(path, "../../../"); page != mastersPage && !slices.Contains(pages, page) {
			t.Errorf("%s is not among the pages that the tests run", page)
		}
	}
}

// step is a command on a page.
type step struct {
	host    string // "node", "second" or "third" for another machine, or ""
	command string
	output  []string // lines of the output; nil if the page shows no output
}

// prompt matches the prompt before a command. Its group captures the machine.
var prompt = regexp.MustCompile(`^(?:master|first|(node|second|third))?\$ `)

// read parses a page and returns its commands.
func read(page string) (steps []step) {
	within, continued := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		start := prompt.FindStringSubmatch(line)
		switch last := len(steps) - 1; {
		case strings.HasPrefix(line, "```"):
			within, continued = line == "```console", false
		case !within:
		case start != nil:
			steps = append(steps, step{host: start[1], command: line[len(start[0]):]})
			continued = strings.HasSuffix(line, "\\")
		case continued:
			steps[last].command += "\n" + line
			continued = strings.HasSuffix(line, "\\")
		case last >= 0:
			steps[last].output = append(steps[last].output, line)
		}
	}
	return steps
}

// isComplete reports whether the page shows the command's whole output.
func (s step) isComplete() bool {
	return s.output != nil && !strings.Contains(strings.Join(s.output, "\n"), "...")
}

// matches reports whether a command's output matches the page. It ignores the number of spaces
// between columns.
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
