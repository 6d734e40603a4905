package kube

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestAuditSettingsFollowConfiguration(t *testing.T) {
	limits := legacyv1.AuditConfig{
		Enabled: true, AuditFilePath: "/log/a", MaximumFileRetentionDays: 3, MaximumRetainedFiles: 4, MaximumFileSizeMegabytes: 5,
	}
	disabled, inFile, inline, invalid := limits, limits, limits, limits
	disabled.Enabled = false
	inFile.PolicyFile = "/policy"
	inline.PolicyConfiguration = runtime.RawExtension{Raw: []byte(`{"apiVersion":"audit.k8s.io/v1beta1","kind":"Policy"}`)}
	invalid.PolicyConfiguration = runtime.RawExtension{Raw: []byte(`[]`)}
	dir := t.TempDir()
	settings := func(policy string) *Audit {
		return &Audit{File: "/log/a", PolicyFile: policy, MaxAgeDays: 3, MaxFiles: 4, MaxSize: 5}
	}
	for _, tt := range []struct {
		name, dir string
		config    legacyv1.AuditConfig
		want      *Audit
		policy    string // part of the file that contains the policy
		err       string
	}{
		{"disabled", dir, disabled, nil, "", ""},
		{"policy in a file", dir, inFile, settings("/policy"), "", ""},
		{"policy in the configuration", dir, inline, settings(dir + "/audit.json"), `"apiVersion":"audit.k8s.io/v1"`, ""},
		{"no policy", dir, limits, settings(dir + "/audit.json"), `"level":"Metadata"`, ""},
		{"policy that is not an object", dir, invalid, nil, "", "auditConfig.policyConfiguration"},
		{"directory is missing", dir + "/none", inline, nil, "", dir + "/none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			audit, err := NewAudit(tt.config, tt.dir)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got error %v, want one about %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, audit); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			if tt.policy == "" {
				return
			}
			if content, err := os.ReadFile(audit.PolicyFile); err != nil || !strings.Contains(string(content), tt.policy) {
				t.Errorf("the policy is %s, want %s in it; error %v", content, tt.policy, err)
			}
		})
	}
}

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
