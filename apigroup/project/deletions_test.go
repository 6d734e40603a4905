package project

import (
	"fmt"
	"testing"

	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestDeletionsOfUsersProjectsAreLimited(t *testing.T) {
	var all []*corev1.Namespace
	add := func(name, requester string, deleted bool) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{requesterAnnotation: requester}}}
		if deleted {
			namespace.DeletionTimestamp = &metav1.Time{}
		}
		all = append(all, namespace)
	}
	for i := range maxDeletions {
		add(fmt.Sprint("evil-", i), "mallory", true)
		add(fmt.Sprint("open-", i), "", true)
		if i > 0 {
			add(fmt.Sprint("shop-", i), "alice", true)
		}
	}
	add("evil", "mallory", false)
	add("shop", "alice", false)
	add("open", "", false)
	d := newDeletions(&feature{observer: &observer{namespaces: namespaceLister(t, all...)}})
	namespaces, projects := corev1.Resource("namespaces"), projectv1.Resource("projects")
	for name, tt := range map[string]struct {
		resource schema.GroupResource
		project  string
		groups   []string
		ok       bool
	}{
		"one project too many":          {projects, "evil", nil, false},
		"one namespace too many":        {namespaces, "evil", nil, false},
		"by the platform":               {namespaces, "evil", []string{user.SystemPrivilegedGroup}, true},
		"a project that is deleted":     {projects, "evil-0", nil, true},
		"the last one":                  {projects, "shop", nil, true},
		"a project without a user":      {projects, "open", nil, true},
		"a project that does not exist": {projects, "none", nil, true},
		"another resource":              {corev1.Resource("pods"), "evil", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := d.Validate(t.Context(), admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", tt.project,
				tt.resource.WithVersion("v1"), "", admission.Delete, nil, false, &user.DefaultInfo{Name: "x", Groups: tt.groups}), nil)
			if (err == nil) != tt.ok {
				t.Errorf("error %v, want admitted: %v", err, tt.ok)
			}
		})
	}
}
