package kube

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// defaultAuditPolicy records the user and the target of each request. It does not record request
// and response bodies.
const defaultAuditPolicy = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata"}]}`

// Audit is OpenShift 3's auditConfig. Sizes are in MiB.
type Audit struct {
	File                          string
	PolicyFile                    string
	MaxAgeDays, MaxFiles, MaxSize int
}

// NewAudit returns the settings in an auditConfig, or nil if auditing is disabled. If the policy is
// part of the configuration, NewAudit writes it to a file in dir.
func NewAudit(c legacyv1.AuditConfig, dir string) (*Audit, error) {
	if !c.Enabled {
		return nil, nil
	}
	audit := &Audit{
		File: c.AuditFilePath, PolicyFile: c.PolicyFile,
		MaxAgeDays: c.MaximumFileRetentionDays, MaxFiles: c.MaximumRetainedFiles, MaxSize: c.MaximumFileSizeMegabytes,
	}
	if audit.PolicyFile != "" {
		return audit, nil
	}
	content, err := auditPolicy(c.PolicyConfiguration.Raw)
	if err != nil {
		return nil, fmt.Errorf("auditConfig.policyConfiguration: %w", err)
	}
	audit.PolicyFile = filepath.Join(dir, "audit.json")
	return audit, atomicfile.Write(audit.PolicyFile, content, 0o600)
}

// auditPolicy returns an audit policy in the version that upstream reads. OpenShift 3's policies
// have an older version with the same fields. If there is no policy, the default policy records
// metadata, as in OpenShift 3. Without a policy, upstream records nothing.
func auditPolicy(policy []byte) ([]byte, error) {
	if policy == nil {
		return []byte(defaultAuditPolicy), nil
	}
	var fields map[string]any
	if err := json.Unmarshal(policy, &fields); err != nil {
		return nil, fmt.Errorf("read audit policy: %w", err)
	}
	if version, _ := fields["apiVersion"].(string); strings.HasPrefix(version, "audit.k8s.io/") {
		fields["apiVersion"] = "audit.k8s.io/v1"
	}
	return json.Marshal(fields)
}
