package kube

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// defaultAuditPolicy records the user and the target of each request. It does not record request
// and response bodies.
const defaultAuditPolicy = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata"}]}`

// WritePolicy writes an auditConfig's policy to a file in dir, and sets PolicyFile.
func (a *Audit) WritePolicy(dir string, policy []byte) error {
	content, err := auditPolicy(policy)
	if err != nil {
		return fmt.Errorf("auditConfig.policyConfiguration: %w", err)
	}
	a.PolicyFile = filepath.Join(dir, "audit.json")
	return atomicfile.Write(a.PolicyFile, content, 0o600)
}

// auditPolicy returns an audit policy in the version that upstream reads. OpenShift 3's policies
// have an older version with the same fields. If there is no policy, the default policy records
// metadata, as in OpenShift 3. Upstream would record nothing.
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
