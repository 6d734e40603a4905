package attack

import (
	"context"
	"errors"
	"flag"
	"maps"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

// update rewrites the table from the API server's responses:
//
//	go test ./test/scenario/attack -run TestMatrix -args -update
var update = flag.Bool("update", false, "rewrite testdata/matrix.txt")

const matrixFile = "testdata/matrix.txt"

var errRefused = errors.New("refused")

// TestMatrixOfActorsAndRights sends an access review for every actor, verb and resource: in the
// actor's project, in another tenant's project, and at the cluster scope. It also reviews every
// path. The API server must allow exactly the permissions in the table.
func TestMatrixOfActorsAndRights(t *testing.T) {
	m := newMatrix(t)
	table, err := readTable(matrixFile)
	if err != nil {
		t.Fatal(err)
	}
	sections := []section{{name: "server", lines: m.universe.lines()}}
	compareLines(t, "server", table.lines["server"], sections[0].lines)

	rightsOf := map[string]rights{}
	for _, a := range m.actors {
		rightsOf[a.name] = m.ask(t, a)
		expected := m.expected(t, table, a)
		base := rightsOf[a.base]
		extra, missing := difference(rightsOf[a.name], base), difference(base, rightsOf[a.name])
		lines := m.universe.contract(extra).lines("")
		lines = append(lines, missing.lines("- ")...)
		sections = append(sections, section{a.name, a.base, lines})
		if !*update {
			report(t, a, rightsOf[a.name], expected)
		}
	}
	// Include the other project's admin, so that the reviews cover both tenants.
	for _, b := range actorsOf(m.foreign, m.project, m.node) {
		if b.name == "admin" {
			grant(t, m.Cluster, []actor{b})
			b.name = "admin of the other project"
			report(t, b, m.ask(t, b), rightsOf["admin"])
		}
	}
	if *update {
		if err := writeTable(matrixFile, table, sections); err != nil {
			t.Fatal(err)
		}
	}
}

// matrix is the shared cluster with the actors.
type matrix struct {
	*kit.Cluster
	universe               universe
	actors                 []actor
	scopes                 map[string][]string // scopes of each actor in addition to "cluster"
	project, foreign, node string
}

func newMatrix(t *testing.T) *matrix {
	s := tenants(t)
	fast := rest.CopyConfig(s.Config)
	fast.QPS, fast.ContentType = -1, "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(fast)
	if err != nil {
		t.Fatal(err)
	}
	s.Client = client
	m := &matrix{Cluster: s.Cluster, project: s.evil, foreign: s.shop, node: s.Status().Nodes[0].Name, scopes: map[string][]string{}}
	m.universe = discoverAll(t, s.Cluster)
	m.actors = actorsOf(m.project, m.foreign, m.node)
	grant(t, s.Cluster, m.actors)
	bindings, err := client.RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range m.actors {
		m.scopes[a.name] = append([]string{"own", "foreign"}, platformScopes(a, bindings.Items)...)
	}
	return m
}

// ask sends all reviews for an actor and returns the actor's permissions.
func (m *matrix) ask(t *testing.T, a actor) rights {
	t.Helper()
	scopes := m.scopes[a.name]
	if scopes == nil {
		scopes = m.scopes["admin"]
	}
	questions := make(chan cell)
	got, problems := rights{}, []error{}
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for right := range questions {
				allowed, err := a.review(context.Background(), m.Cluster, right)
				mu.Lock()
				if allowed {
					got[right] = true
				}
				if err != nil {
					problems = append(problems, err)
				}
				mu.Unlock()
			}
		})
	}
	all := m.universe.cells(scopes)
	for _, right := range all {
		questions <- right
	}
	close(questions)
	workers.Wait()
	if err := errors.Join(problems...); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d questions, %d rights", a.name, len(all), len(got))
	return got
}

// expected returns an actor's permissions according to the table.
func (m *matrix) expected(t *testing.T, table table, a actor) rights {
	t.Helper()
	expected := rights{}
	if a.base != "" {
		at := slices.IndexFunc(m.actors, func(other actor) bool { return other.name == a.base })
		expected = m.expected(t, table, m.actors[at])
	}
	with, without, err := readRights(table.lines[a.name])
	if err != nil {
		t.Fatalf("%s, section %s: %v", matrixFile, a.name, err)
	}
	maps.Copy(expected, m.universe.expand(with, m.scopes[a.name]))
	for right := range without {
		delete(expected, right)
	}
	return expected
}

func difference(a, b rights) rights {
	rest := rights{}
	for right := range a {
		if !b[right] {
			rest[right] = true
		}
	}
	return rest
}

// report fails the test for each permission that differs from the table.
func report(t *testing.T, a actor, got, expected rights) {
	t.Helper()
	const maximum = 40
	for text, list := range map[string]rights{
		"%s may %s, which %s does not list": difference(got, expected),
		"%s may not %s, which %s lists":     difference(expected, got),
	} {
		var cells []string
		for right := range list {
			cells = append(cells, right.String())
		}
		slices.Sort(cells)
		for i, right := range cells {
			if i == maximum {
				t.Errorf("and %d more", len(cells)-maximum)
				break
			}
			t.Errorf(text, a.name, right, matrixFile)
		}
	}
}

// compareLines fails the test for each line that is in only one of two sections.
func compareLines(t *testing.T, section string, want, got []string) {
	t.Helper()
	if *update {
		return
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("the server has a line that section %s of %s does not contain: %s", section, matrixFile, line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("section %s of %s contains a line that the server does not have: %s", section, matrixFile, line)
		}
	}
}
