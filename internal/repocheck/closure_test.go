package repocheck

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestLightProgramsStayLight also follows the imports of other modules, which the file rules
// ignore.
func TestLightProgramsStayLight(t *testing.T) {
	graph := loadGraph(t)
	for _, r := range light {
		for _, finding := range checkReach(graph, r) {
			t.Error(finding)
		}
	}
}

// checkReach finds a chain of imports from r's package to each forbidden import path.
func checkReach(graph map[string][]string, r reach) (violations findings) {
	start := module + "/" + r.folder
	cameFrom := map[string]string{start: ""}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		pkg := queue[0]
		if hit := slices.ContainsFunc(r.forbidden, func(prefix string) bool { return strings.HasPrefix(pkg, prefix) }); hit && !strings.HasPrefix(pkg, module) {
			violations.add(r.folder, 0, "depends on %s: this program %s", chain(cameFrom, pkg), r.reason)
			continue // further findings below this package would only repeat this one
		}
		for _, next := range graph[pkg] {
			if _, ok := cameFrom[next]; !ok {
				cameFrom[next] = pkg
				queue = append(queue, next)
			}
		}
	}
	return violations
}

// chain formats the chain of imports that leads to a package.
func chain(cameFrom map[string]string, pkg string) string {
	chain := []string{pkg}
	for from := cameFrom[pkg]; from != ""; from = cameFrom[from] {
		chain = append(chain, strings.TrimPrefix(from, module+"/"))
	}
	slices.Reverse(chain)
	return strings.Join(chain, " > ")
}

// loadGraph returns the imports of every dependency, as reported by the go tool. For packages that
// do not build, it includes the imports that can be read.
func loadGraph(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Imports", "./...")
	list.Dir = "../.."
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("list packages with the go tool: %v", err)
	}
	graph := map[string][]string{}
	for packages := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := packages.Decode(&pkg); errors.Is(err, io.EOF) {
			return graph
		} else if err != nil {
			t.Fatalf("decode output of go list: %v", err)
		}
		graph[pkg.ImportPath] = pkg.Imports
	}
}

func TestCheckReach(t *testing.T) {
	start := module + "/cmd/oc"
	graph := map[string][]string{
		start:             {"fmt", module + "/cli"},
		module + "/cli":   {"example.org/a"},
		"example.org/a":   {"heavy.org/x", "example.org/b"},
		"example.org/b":   {"heavy.org/y"},
		"heavy.org/x":     {"heavy.org/z"},
		"heavyweight.org": {"heavy.org/never"},
	}
	got := checkReach(graph, reach{"cmd/oc", []string{"heavy.org/"}, "is light"})
	want := findings{
		"cmd/oc: depends on cmd/oc > cli > example.org/a > heavy.org/x: this program is light",
		"cmd/oc: depends on cmd/oc > cli > example.org/a > example.org/b > heavy.org/y: this program is light",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := checkReach(graph, reach{"cmd/oc", []string{"other.org/"}, "is light"}); got != nil {
		t.Errorf("found %q, want nothing", got)
	}
}
