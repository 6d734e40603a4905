package kube

import (
	"strings"
	"testing"
)

func TestAuditPolicyHasVersionOfUpstream(t *testing.T) {
	tests := []struct{ name, policy, want string }{
		{
			"policy of OpenShift 3",
			`{"apiVersion":"audit.k8s.io/v1beta1","kind":"Policy","rules":[{"level":"Request"}]}`,
			`{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Request"}]}`,
		},
		{
			"unknown group", `{"apiVersion":"example.com/v1","kind":"Policy"}`,
			`{"apiVersion":"example.com/v1","kind":"Policy"}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := auditPolicy([]byte(tt.policy)); err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestAuditPolicyDefaultsToMetadata(t *testing.T) {
	if got, err := auditPolicy(nil); err != nil || !strings.Contains(string(got), `"Metadata"`) {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestAuditPolicyRejectsList(t *testing.T) {
	if _, err := auditPolicy([]byte(`[]`)); err == nil {
		t.Error("no error")
	}
}
