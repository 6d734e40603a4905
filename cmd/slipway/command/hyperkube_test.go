package command

import (
	"bytes"
	"strings"
	"testing"
)

func TestHyperkubePrintsOptionsOfKubelet(t *testing.T) {
	for _, flag := range []string{"-h", "--help"} {
		var out bytes.Buffer
		command := NewHyperkube(nil)
		command.SetArgs([]string{"kubelet", flag})
		command.SetOut(&out)
		if err := command.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"--max-pods int32", "--image-gc-high-threshold", "--kube-api-qps", "kubeletArguments"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("hyperkube kubelet %s does not print %q:\n%s", flag, want, &out)
			}
		}
	}
}

func TestHyperkubeRunsOnlyKubectl(t *testing.T) {
	var got []string
	command := NewHyperkube(func(name string, args []string) error {
		got = append([]string{name}, args...)
		return nil
	})
	command.SetArgs([]string{"kubectl", "get", "pods", "-o", "name"})
	if err := command.ExecuteContext(t.Context()); err != nil || strings.Join(got, " ") != "kubectl get pods -o name" {
		t.Errorf("it runs %q: %v", got, err)
	}
	command.SetArgs([]string{"kubelet", "--max-pods=10"})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "kubeletArguments") {
		t.Errorf("hyperkube kubelet: error %v", err)
	}
}
