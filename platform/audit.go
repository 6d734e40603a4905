package platform

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/kube"
)

// defaultAuditPolicy records of each request who asked for what, and nothing that was sent or answered.
const defaultAuditPolicy = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata"}]}`

// audit is what auditConfig asks for. The API server of upstream records nothing without a policy, that of OpenShift 3 the metadata of each request.
func (h *host) audit() (*kube.Audit, error) {
	c := h.Master.AuditConfig
	if !c.Enabled {
		return nil, nil
	}
	audit := &kube.Audit{
		File: c.AuditFilePath, PolicyFile: c.PolicyFile,
		MaxAgeDays: c.MaximumFileRetentionDays, MaxFiles: c.MaximumRetainedFiles, MaxSize: c.MaximumFileSizeMegabytes,
	}
	if audit.PolicyFile != "" {
		return audit, nil
	}
	policy := []byte(defaultAuditPolicy)
	if raw := c.PolicyConfiguration.Raw; raw != nil {
		var err error
		if policy, err = currentPolicy(raw); err != nil {
			return nil, err
		}
	}
	audit.PolicyFile = filepath.Join(h.runDir(), "audit.json")
	return audit, atomicfile.Write(audit.PolicyFile, policy, 0o600)
}

// currentPolicy gives a policy the one version that upstream still reads; those of OpenShift 3 have the same fields.
func currentPolicy(raw []byte) ([]byte, error) {
	var policy map[string]any
	if err := json.Unmarshal(raw, &policy); err != nil {
		return nil, fmt.Errorf("read auditConfig.policyConfiguration: %w", err)
	}
	if version, _ := policy["apiVersion"].(string); strings.HasPrefix(version, "audit.k8s.io/") {
		policy["apiVersion"] = "audit.k8s.io/v1"
	}
	return json.Marshal(policy)
}
