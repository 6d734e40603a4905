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

// ExecPluginName is the admission plugin for commands in pods, as the configuration calls it.
const ExecPluginName = "SCCExecRestrictions"

// execCheck is the admission plugin that lets users into those pods alone that they could have made themselves: a pod that a controller has made, such as
// that of a build, may do more on its node than they may. The pod's own service account does not count.
type execCheck struct {
	*admission.Handler
	judge  *judge
	client kubernetes.Interface
}

var (
	_ admission.ValidationInterface          = &execCheck{}
	_ initializer.WantsExternalKubeClientSet = &execCheck{}
)

func newExecCheck(judge *judge) *execCheck {
	return &execCheck{Handler: admission.NewHandler(admission.Connect), judge: judge}
}

// SetExternalKubeClientSet takes the client that reads pods.
func (c *execCheck) SetExternalKubeClientSet(client kubernetes.Interface) { c.client = client }

// ValidateInitialization says whether everything is there.
func (c *execCheck) ValidateInitialization() error {
	if c.client == nil {
		return fmt.Errorf("set up admission plug-in %s: it has no client", ExecPluginName)
	}
	return nil
}

// Validate refuses commands in pods, and connections to their standard input, that no constraint of the user's would accept.
func (c *execCheck) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "exec" && a.GetSubresource() != "attach" {
		return nil
	}
	pod, err := c.client.CoreV1().Pods(a.GetNamespace()).Get(ctx, a.GetName(), metav1.GetOptions{})
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	constraints, namespace, err := c.judge.court(ctx, a.GetNamespace(), []user.Info{a.GetUserInfo()})
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if decision := scc.Recheck(constraints, namespace, pod, field.NewPath("spec")); decision.AllowedBy == nil {
		return refuse(a, decision)
	}
	return nil
}
