package kit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMergeCombinesMaps(t *testing.T) {
	got, err := merge("{kind: NodeConfig}", "{slipway: {cgroupRoot: /a}}", "slipway:\n  bridge: b\nnodeName: host1\n", "")
	if err != nil {
		t.Fatal(err)
	}
	want := "kind: NodeConfig\nnodeName: host1\nslipway:\n  bridge: b\n  cgroupRoot: /a\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}

func TestNamespaceOfTest(t *testing.T) {
	for test, want := range map[string]string{
		"TestPodRuns":              "podruns",
		"TestPodRuns/on_port_8080": "podruns-on-port-8080",
		"TestAVeryLongNameThatSaysAllThatThereIsToBeSaidAboutTheBehaviourUnderTest": "averylongnamethatsaysallthatthereistobesaidaboutthebehaviourund",
	} {
		if got := namespaceOf(test); got != want {
			t.Errorf("namespace of %s is %q, want %q", test, got, want)
		}
	}
}
