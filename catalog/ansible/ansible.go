// Package ansible implements the Ansible service broker. It offers Ansible playbook bundles (APBs)
// as services of the Open Service Broker API. A bundle is an image with a label that contains its
// specification, apb.yml. The image is stored in the cluster's registry, or the cluster imports it
// from another registry. To provision, update, deprovision, bind or unbind, the broker runs the
// image in a pod.
//
// The pod runs in a separate namespace, the sandbox. The pod's service account has a role in the
// user's project for the duration of the operation. The user must have all permissions of this
// role, unless the project is being deleted.
//
// The broker stores an instance in a secret, together with its last operation. It records an
// operation before it creates the pod, and derives all names from the operation. Requests for the
// operation's state continue the operation, so a crash does not lose progress.
//
// Source: OpenShift Container Platform 3.9 Architecture, 6.3 OpenShift Ansible Broker, and Open
// Service Broker API, version 2.13. The label, the image arguments and the credentials secret are
// the same as in bundles for OpenShift 3.11.
package ansible

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/osbserver"
	"github.com/slipway-platform/slipway/internal/registryclient"
)

// Root is the broker's path prefix. Only administrators and the service catalog have access to it.
const Root = "/brokers/ansible.openshift.io/"

// Options configures the broker.
type Options struct {
	// Namespaces lists the projects whose image streams can contain bundles.
	Namespaces []string
	// WhiteList and BlackList contain regular expressions. The name of a bundle's image stream must
	// match at least one expression in WhiteList and none in BlackList. An empty WhiteList matches
	// all names, unless BlackList is also empty.
	WhiteList, BlackList []string
	// Registries lists additional registries with bundles. Pool provides the connections to these
	// registries.
	Registries []Registry
	Pool       *registryclient.Pool
	// Secrets lists the secrets for bundles.
	Secrets []Secret
	// SandboxRole is the cluster role that a bundle has in the user's project.
	SandboxRole string
	// KeepNamespace keeps all sandboxes. KeepNamespaceOnError keeps the sandboxes of failed
	// operations.
	KeepNamespace, KeepNamespaceOnError bool
}

// serviceInstances is the resource of the service catalog's instances.
var serviceInstances = schema.GroupVersionResource{Group: "servicecatalog.k8s.io", Version: "v1beta1", Resource: "serviceinstances"}

// broker serves requests from platforms.
type broker struct {
	options    Options
	origins    []origin
	loopback   *rest.Config
	kube       kubernetes.Interface
	images     imageclient.ImageV1Interface
	authorizer authorizer.Authorizer
	// ordered reports whether a project contains a ServiceInstance with the given ID.
	ordered func(ctx context.Context, project, id string) (bool, error)
}

// Feature returns the broker so that it can be registered with the API server.
func Feature(options Options) apiserver.Feature {
	return apiserver.Feature{Groups: []apiserver.Group{group(options)}, Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
		b, err := newBroker(deps, options)
		return apiserver.Hooks{
			Filters:   []func(http.Handler) http.Handler{osbserver.RequireCredentials(Root)},
			Handlers:  []apiserver.Handler{{Path: Root, Handler: b.routes()}},
			PostStart: map[string]genericserver.PostStartHookFunc{"slipway/bundles": b.startSweeping},
		}, err
	}}
}

func newBroker(deps apiserver.Deps, options Options) (*broker, error) {
	loopback := apiserver.Unlimited(deps.Loopback)
	b := &broker{options: options, loopback: loopback, kube: deps.Kube, authorizer: deps.Authorizer}
	var err error
	if b.images, err = imageclient.NewForConfig(loopback); err != nil {
		return b, fmt.Errorf("create Ansible service broker client: %w", err)
	}
	b.ordered = func(ctx context.Context, project, id string) (bool, error) {
		instances, err := deps.Dynamic.Resource(serviceInstances).Namespace(project).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("list instances of project %q: %w", project, err)
		}
		return slices.ContainsFunc(instances.Items, func(instance unstructured.Unstructured) bool {
			external, _, _ := unstructured.NestedString(instance.Object, "spec", "externalID")
			return external == id
		}), nil
	}
	b.origins, err = origins(options)
	return b, err
}

func compile(patterns []string) (compiled []*regexp.Regexp, err error) {
	for _, pattern := range patterns {
		expression, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("compile pattern %q of the Ansible service broker: %w", pattern, err)
		}
		compiled = append(compiled, expression)
	}
	return compiled, nil
}

func (b *broker) routes() http.Handler {
	const (
		instance = Root + "v2/service_instances/{instance}"
		binding  = instance + "/service_bindings/{binding}"
	)
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(*http.Request) (osbserver.Response, error){
		"GET " + Root + "v2/catalog":          b.catalog,
		"POST " + Root + "v2/bootstrap":       b.bootstrap,
		"PUT " + instance:                     b.provision,
		"PATCH " + instance:                   b.update,
		"GET " + instance:                     b.readInstance,
		"DELETE " + instance:                  b.deprovision,
		"GET " + instance + "/last_operation": b.lastOperation,
		"PUT " + binding:                      b.bind,
		"GET " + binding:                      b.readBinding,
		"DELETE " + binding:                   b.unbind,
		"GET " + binding + "/last_operation":  b.lastOperation,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { osbserver.Serve(w, r, handle) })
	}
	return mux
}
