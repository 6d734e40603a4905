// Package standard contains the default template for requested projects. The server uses it if the
// administrator has not configured a template. `oc adm create-bootstrap-project-template` prints it
// as a starting point for a custom template.
package standard

import (
	"encoding/json"
	"fmt"

	projectv1 "github.com/openshift/api/project/v1"
	templatev1 "github.com/openshift/api/template/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Parameters that a project request passes to its template.
const (
	ProjectParameter     = "PROJECT_NAME"
	DisplayNameParameter = "PROJECT_DISPLAYNAME"
	DescriptionParameter = "PROJECT_DESCRIPTION"
	AdminParameter       = "PROJECT_ADMIN_USER"
	RequesterParameter   = "PROJECT_REQUESTING_USER"
)

// Annotations that describe a project to users.
const (
	DisplayNameAnnotation = "openshift.io/display-name"
	DescriptionAnnotation = "openshift.io/description"
)

// Template returns the template. It contains the project, and a role binding that grants the user
// the admin role in the project.
func Template() (*templatev1.Template, error) {
	project := &projectv1.Project{
		TypeMeta: metav1.TypeMeta{APIVersion: projectv1.GroupVersion.String(), Kind: "Project"},
		ObjectMeta: metav1.ObjectMeta{Name: "${" + ProjectParameter + "}", Annotations: map[string]string{
			DisplayNameAnnotation:                "${" + DisplayNameParameter + "}",
			DescriptionAnnotation:                "${" + DescriptionParameter + "}",
			projectv1.ProjectRequesterAnnotation: "${" + RequesterParameter + "}",
		}},
	}
	admin := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: "admin", Namespace: "${" + ProjectParameter + "}"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "${" + AdminParameter + "}"}},
	}
	template := &templatev1.Template{
		TypeMeta:   metav1.TypeMeta{APIVersion: templatev1.GroupVersion.String(), Kind: "Template"},
		ObjectMeta: metav1.ObjectMeta{Name: "project-request"},
	}
	for _, object := range []any{project, admin} {
		raw, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encode default project template: %w", err)
		}
		template.Objects = append(template.Objects, runtime.RawExtension{Raw: raw})
	}
	for _, name := range []string{ProjectParameter, DisplayNameParameter, DescriptionParameter, AdminParameter, RequesterParameter} {
		template.Parameters = append(template.Parameters, templatev1.Parameter{Name: name})
	}
	return template, nil
}
