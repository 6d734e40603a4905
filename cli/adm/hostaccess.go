package adm

import (
	"context"
	"fmt"
	"slices"

	appsv1 "github.com/openshift/api/apps/v1"
	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/slipway-platform/slipway/cli/objects"
)

// hostAccess returns an error if the pods in desired use their host's network or ports, but no SCC
// allows this for their service account. As in OpenShift 3, it is called only for a dry run,
// because the actual installation grants this permission.
func (i *installation) hostAccess(ctx context.Context, namespace string, desired []runtime.Object) error {
	template := templateOf(desired)
	if template == nil || !usesHost(template.Spec) {
		return nil
	}
	account := template.Spec.ServiceAccountName
	// Remove the service account from the template, so that the review also works if the account
	// does not exist yet.
	template.Spec.ServiceAccountName, template.Spec.DeprecatedServiceAccount = "", ""
	review, err := objects.Plain(&securityv1.PodSecurityPolicySubjectReview{
		TypeMeta: metav1.TypeMeta{APIVersion: securityv1.GroupVersion.String(), Kind: "PodSecurityPolicySubjectReview"},
		Spec: securityv1.PodSecurityPolicySubjectReviewSpec{
			Template: *template, User: serviceaccount.MakeUsername(namespace, account), Groups: serviceaccount.MakeGroupNames(namespace),
		},
	})
	if err != nil {
		return err
	}
	client, err := i.factory.DynamicClient()
	if err != nil {
		return err
	}
	reviews := client.Resource(securityv1.GroupVersion.WithResource("podsecuritypolicysubjectreviews"))
	result, err := reviews.Namespace(namespace).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("check the permissions of service account %q: %w", account, err)
	}
	if _, allowed, _ := unstructured.NestedMap(result.Object, "status", "allowedBy"); allowed {
		return nil
	}
	return fmt.Errorf("service account %q is not allowed to access %s on nodes, grant access with: oc adm policy add-scc-to-user hostnetwork -z %[1]s", account, noun(template.Spec))
}

// templateOf returns a copy of the first deployment config's pod template, or nil if there is none.
func templateOf(desired []runtime.Object) *corev1.PodTemplateSpec {
	for _, object := range desired {
		if config, ok := object.(*appsv1.DeploymentConfig); ok {
			return config.Spec.Template.DeepCopy()
		}
	}
	return nil
}

// usesHost reports whether the pods use their host's network or ports.
func usesHost(pod corev1.PodSpec) bool {
	return pod.HostNetwork || slices.ContainsFunc(pod.Containers, func(container corev1.Container) bool {
		return slices.ContainsFunc(container.Ports, func(port corev1.ContainerPort) bool { return port.HostPort != 0 })
	})
}

// noun returns a noun for the host resource that the pods use. It is part of an error message.
func noun(pod corev1.PodSpec) string {
	if pod.HostNetwork {
		return "the host network"
	}
	return "host ports"
}
