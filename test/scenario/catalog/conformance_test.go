package catalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestBuiltInBrokersFollowTheSpecification(t *testing.T) {
	c := kit.Shared(t)
	pushBundle(t, c, "check-apb", strings.ReplaceAll(refusedSpec, "rights-apb", "check-apb"))
	c.In("openshift").Apply(`{apiVersion: template.openshift.io/v1, kind: Template, metadata: {name: check-template}, parameters: [{name: NAME, required: true}],
		objects: [{apiVersion: v1, kind: Secret, metadata: {name: "${NAME}", annotations: {template.openshift.io/expose-password: "{.data.password}"}}, stringData: {password: a}}]}`)
	t.Cleanup(func() { c.In("openshift").OC("delete", "template/check-template") })
	c.OC("create", "serviceaccount", "checker")
	c.OC("adm", "policy", "add-cluster-role-to-user", "cluster-admin", "-z", "checker")
	t.Cleanup(func() { c.OC("adm", "policy", "remove-cluster-role-from-user", "cluster-admin", "-z", "checker") })
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(c.OC("create", "token", "checker")), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, order := range map[string][]string{
		"/brokers/template.openshift.io": {"--service=check-template", `--parameters={"NAME": "checked"}`, "--namespace=" + c.Namespace},
		"/brokers/ansible.openshift.io":  nil,
	} {
		arguments := append([]string{"catalog", "check", c.Config.Host + path, "--token-file=" + token, "--ca-file=" + c.Path("pki", "ca.crt")}, order...)
		// Retry, because the broker's informer receives the template shortly after its creation.
		c.WaitFor("conformance of "+path, func(context.Context) error {
			if result := c.Slipway(arguments...); result.Code != 0 {
				return fmt.Errorf("%s%s", result.Stdout, result.Stderr)
			}
			return nil
		})
	}
}
