package security

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/apigroup/security/scc"
)

// ExecPluginName is the name, in the server configuration, of the admission plugin for commands in
// pods.
const ExecPluginName = "SCCExecRestrictions"

// execPlugin is the admission plugin that gives users access only to pods that they could create
// themselves. A pod that a controller creates, such as a build pod, can have more privileges on its
// node than the user. The plugin ignores the constraints that only the pod's service account is
// allowed to use.
type execPlugin struct {
	*admission.Handler
	evaluator *evaluator
	client    kubernetes.Interface
}

var (
	_ admission.ValidationInterface          = &execPlugin{}
	_ initializer.WantsExternalKubeClientSet = &execPlugin{}
)

func newExecPlugin(evaluator *evaluator) *execPlugin {
	return &execPlugin{Handler: admission.NewHandler(admission.Connect), evaluator: evaluator}
}

// SetExternalKubeClientSet stores the client that reads pods.
func (c *execPlugin) SetExternalKubeClientSet(client kubernetes.Interface) { c.client = client }

// ValidateInitialization returns an error if the client is not set.
func (c *execPlugin) ValidateInitialization() error {
	if c.client == nil {
		return fmt.Errorf("initialize admission plugin %s: no client", ExecPluginName)
	}
	return nil
}

// Validate rejects commands in a pod, and connections to the pod's standard input, if none of the
// user's constraints accepts the pod.
func (c *execPlugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "exec" && a.GetSubresource() != "attach" {
		return nil
	}
	pod, err := c.client.CoreV1().Pods(a.GetNamespace()).Get(ctx, a.GetName(), metav1.GetOptions{})
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	constraints, namespace, err := c.evaluator.candidates(ctx, a.GetNamespace(), []user.Info{a.GetUserInfo()})
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if decision := scc.Recheck(constraints, namespace, pod, field.NewPath("spec")); decision.AllowedBy == nil {
		return refuse(a, decision)
	}
	return nil
}
