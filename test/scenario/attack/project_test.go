package attack

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestTenantCannotChangeLifecycleOfProject(t *testing.T) {
	s := tenants(t)
	project, namespace := "/apis/project.openshift.io/v1/projects/"+s.evil, "/api/v1/namespaces/"+s.evil
	node := s.OC("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}/{.items[0].metadata.uid}")
	name, uid, _ := strings.Cut(node, "/")
	for field, value := range map[string]string{
		"finalizers":      `["example.com/for-ever"]`,
		"ownerReferences": `[{"apiVersion":"v1","kind":"Node","name":"` + name + `","uid":"` + uid + `"}]`,
	} {
		patch := `{"metadata":{"` + field + `":` + value + `}}`
		s.mallory.Refused("PATCH", project, patch, "metadata."+field, apierrors.IsInvalid)
		current := s.mallory.May("GET", project, "")
		s.mallory.Refused("PUT", project, strings.Replace(current, `"metadata":{`, `"metadata":{"`+field+`":`+value+`,`, 1), "metadata."+field, apierrors.IsInvalid)
		s.mallory.MayNot("PATCH", namespace, patch, "cannot patch resource")
		s.mallory.MayNot("PUT", namespace, current, "cannot update resource")
	}
	s.mallory.May("PATCH", project, `{"spec":{"finalizers":["example.com/for-ever"]},"status":{"phase":"Terminating"}}`)
	if current := s.mallory.May("GET", project, ""); strings.Contains(current, "for-ever") || strings.Contains(current, "Terminating") {
		t.Errorf("the project becomes %s", current)
	}
	s.mallory.MayNot("PUT", namespace+"/finalize", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+s.evil+`"}}`, "cannot update resource")
	s.mallory.May("PATCH", project, `{"metadata":{"annotations":{"openshift.io/display-name":"Evil"}}}`)
}

func TestTenantCannotRequestNameOfPlatform(t *testing.T) {
	s := tenants(t)
	for _, name := range []string{"system", "system-serviceaccounts", "default", "openshift", "openshift-monitoring", "kube-system", "kube-mine", "kubernetes", "slipway", "svc", "pod", "endpoints", "local"} {
		s.mallory.Refused("POST", "/apis/project.openshift.io/v1/projectrequests", `{"apiVersion":"project.openshift.io/v1","kind":"ProjectRequest","metadata":{"name":"`+name+`"}}`,
			"reserved name", apierrors.IsInvalid)
	}
	for _, name := range []string{"com", "io", "internal"} {
		s.mallory.MayNot("POST", "/apis/project.openshift.io/v1/projectrequests", `{"apiVersion":"project.openshift.io/v1","kind":"ProjectRequest","metadata":{"name":"`+name+`"}}`, "top-level domain")
	}
	s.mallory.MayNot("POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"system"}}`, "cannot create resource")
}
