package nodegroup

import (
	"strings"
	"testing"
)

func TestGroupHasOneConfigMapByBothNames(t *testing.T) {
	for group, want := range map[string]string{"": "", "infra": "node-config-infra", "node-config-infra": "node-config-infra"} {
		if got := ConfigMapOf(group); got != want {
			t.Errorf("ConfigMapOf(%q) is %q, want %q", group, got, want)
		}
	}
}

func TestDesiredConfigurationIsParsed(t *testing.T) {
	// The hash is the output of `printf a | md5sum`.
	name, hash, ok := ParseDesired(Desired("node-config-infra", "a"))
	if name != "node-config-infra" || hash != "0cc175b9c0f1b6a831c399e269772661" || !ok {
		t.Errorf("parsed %q, %q, %t", name, hash, ok)
	}
	for _, value := range []string{"", "node-config-infra", "node-config-infra/", "kube-root-ca.crt/0cc1"} {
		if _, _, ok := ParseDesired(value); ok {
			t.Errorf("%q is accepted", value)
		}
	}
}

func TestLabelsAreReadFromArguments(t *testing.T) {
	labels, err := Labels("kubeletArguments:\n  node-labels:\n  - node-role.kubernetes.io/infra=true,zone=east\n  - logging-infra-fluentd=true\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := Keys(labels); got != "logging-infra-fluentd,node-role.kubernetes.io/infra,zone" || labels["zone"] != "east" {
		t.Errorf("labels are %v", labels)
	}
	if _, err := Labels("kubeletArguments: {node-labels: ['zone=b c']}"); err == nil || !strings.Contains(err.Error(), `"zone=b c" is not a label`) {
		t.Errorf("error is %v", err)
	}
}
