package login

import (
	"errors"
	"net/http"

	"k8s.io/apiserver/pkg/audit"

	"github.com/slipway-platform/slipway/oauth/idp"
)

// Annotations on audit events for password logins. OpenShift 4 uses the same annotations.
const (
	auditUserName = "authentication.openshift.io/username"
	auditDecision = "authentication.openshift.io/decision"
)

// note adds the result of a password login to the audit event of the request.
func note(r *http.Request, name string, success bool, err error) {
	decision := "deny"
	switch {
	case success:
		decision = "allow"
	case err != nil && !errors.Is(err, idp.ErrRefused):
		decision = "error"
	}
	audit.AddAuditAnnotations(r.Context(), auditUserName, name[:min(len(name), maxShown)], auditDecision, decision)
}
