package scc

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestDecisions evaluates the pods in testdata. The first document in a file lists the constraints,
// as names of built-in constraints and as complete constraints. The other documents are pods. The
// golden file contains the decision for each pod.
func TestDecisions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("find cases: %v, %d files", err, len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			documents := bytes.Split(content, []byte("\n---\n"))
			constraints := usable(t, documents[0])
			var out bytes.Buffer
			for _, document := range documents[1:] {
				pod := &corev1.Pod{}
				if err := yaml.UnmarshalStrict(document, pod); err != nil {
					t.Fatal(err)
				}
				before := pod.DeepCopy()
				CarryAnnotations(pod)
				write(t, &out, pod.Name, Decide(constraints, namespace(), pod, field.NewPath("spec")))
				if before.Annotations[securityv1.ValidatedSCCAnnotation] != pod.Annotations[securityv1.ValidatedSCCAnnotation] {
					t.Errorf("the input pod %s was changed", pod.Name)
				}
			}
			compare(t, strings.TrimSuffix(file, ".yaml")+".golden", out.Bytes())
		})
	}
}

func usable(t *testing.T, document []byte) []*Constraints {
	t.Helper()
	input := struct {
		BuiltIn []string       `json:"builtIn"`
		Own     []*Constraints `json:"own"`
	}{}
	if err := yaml.UnmarshalStrict(document, &input); err != nil {
		t.Fatal(err)
	}
	constraints := input.Own
	for _, candidate := range constraints {
		Default(candidate)
		if errs := Validate(candidate); len(errs) > 0 {
			t.Fatalf("constraint %s: %v", candidate.Name, errs)
		}
	}
	for _, builtIn := range BuiltIn("openshift-infra") {
		if slices.Contains(input.BuiltIn, builtIn.Name) || slices.Contains(input.BuiltIn, "*") {
			constraints = append(constraints, builtIn)
		}
	}
	Sort(constraints)
	return constraints
}

// namespace returns a namespace with allocated ranges.
func namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{
		securityv1.UIDRangeAnnotation:           "1000010000/10000",
		securityv1.SupplementalGroupsAnnotation: "1000010000/10000,5-6",
		securityv1.MCSAnnotation:                "s0:c3,c1",
	}}}
}

// write prints the decision for a pod: the constraint that allows it, the security contexts, and
// the objections.
func write(t *testing.T, out *bytes.Buffer, name string, decision Decision) {
	t.Helper()
	fmt.Fprintf(out, "pod %s\n", name)
	for _, objection := range decision.Objections {
		fmt.Fprintf(out, "  %s objects\n", objection.Constraint)
		for _, err := range objection.Errors {
			fmt.Fprintf(out, "    %v\n", err)
		}
	}
	if decision.AllowedBy == nil {
		out.WriteString("  refused\n")
		return
	}
	fmt.Fprintf(out, "  allowed by %s\n", decision.Pod.Annotations[securityv1.ValidatedSCCAnnotation])
	show(t, out, "pod", decision.Pod.Spec.SecurityContext)
	eachContainer(&decision.Pod.Spec, func(c container) { show(t, out, fmt.Sprintf("%s[%d]", c.list, c.index), *c.context) })
}

func show(t *testing.T, out *bytes.Buffer, title string, context any) {
	t.Helper()
	text, err := yaml.Marshal(context)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(out, "    %s:\n", title)
	for line := range strings.Lines(string(text)) {
		out.WriteString("      " + line)
	}
}

func compare(t *testing.T, golden string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v; run go test with -update to write it", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("decisions differ from %s; got:\n%s", golden, got)
	}
}
