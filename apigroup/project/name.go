package project

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	projectv1 "github.com/openshift/api/project/v1"
	"golang.org/x/net/publicsuffix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apiserver"
)

// NamePluginName is the name of the admission plugin that reserves the names of top-level domains.
const NamePluginName = "slipway.io/ProjectName"

// reserved reports whether a name is reserved for the platform. Reserved names are the names of the
// platform's projects, and names that resemble the names of the platform's users and groups, which
// begin with `system:`.
func reserved(name string) bool {
	if slices.Contains([]string{"default", "openshift", "kube", "kubernetes", "system", "slipway"}, name) {
		return true
	}
	return slices.ContainsFunc([]string{"openshift-", "kube-", "kubernetes-", "system-", "slipway-"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

// inCluster reports whether a name is the last label of the cluster's DNS names, with or without
// the cluster domain. domains are the cluster domain and the default domain of routes.
//
// The resolver of a pod first appends the cluster's search domains to a name with fewer than five
// dots. For example, it first resolves db.shop.svc as db.shop.svc.svc.cluster.local. If a project
// named svc contained a service named shop, this name would refer to that service, for all pods.
func inCluster(name string, domains []string) bool {
	if slices.Contains([]string{"svc", "pod", "endpoints"}, name) {
		return true
	}
	return slices.ContainsFunc(domains, func(domain string) bool {
		domain = strings.ToLower(strings.TrimSuffix(domain, "."))
		return domain[strings.LastIndex(domain, ".")+1:] == name
	})
}

// isTopLevel reports whether a name is a top-level domain of the Internet, or one of the top-level
// domains that private networks use (RFC 6762, appendix G).
func isTopLevel(name string) bool {
	if slices.Contains([]string{"intranet", "internal", "private", "corp", "home", "lan", "local"}, name) {
		return true
	}
	// PublicSuffix returns false for a name below an unregistered top-level domain.
	_, registered := publicsuffix.PublicSuffix("example." + name)
	return registered
}

// NameConfig is the configuration of slipway.io/ProjectName.
type NameConfig struct {
	metav1.TypeMeta `json:",inline"`
	// AllowedTopLevelDomains lists top-level domains that users can request as project names. nil
	// means commonNames. A tenant whose project has the name of such a domain can capture names
	// below the domain.
	AllowedTopLevelDomains []string `json:"allowedTopLevelDomains"`
}

// commonNames returns top-level domains that are also common project names.
func commonNames() []string {
	return []string{"app", "bar", "blog", "build", "ci", "data", "dev", "foo", "one", "prod", "qa", "shop", "store", "team", "tools", "zone"}
}

// nameCheck is the slipway.io/ProjectName admission plugin. It rejects requests for projects that
// are named like a top-level domain. If a project named com contained a service named example, all
// pods would resolve example.com to that service. The reason is that a pod's resolver first looks
// up example.com.svc.cluster.local.
type nameCheck struct {
	*admission.Handler
	allowed []string
}

var _ admission.ValidationInterface = &nameCheck{}

func newNameCheck(reader io.Reader) (*nameCheck, error) {
	config := NameConfig{}
	if err := apiserver.DecodeConfig(reader, "ProjectNameConfig", &config); err != nil {
		return nil, fmt.Errorf("read configuration of %s: %w", NamePluginName, err)
	}
	if config.AllowedTopLevelDomains == nil {
		config.AllowedTopLevelDomains = commonNames()
	}
	return &nameCheck{admission.NewHandler(admission.Create), config.AllowedTopLevelDomains}, nil
}

// Validate rejects a request for a project with the name of a top-level domain.
func (n *nameCheck) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != projectv1.Resource("projectrequests") || a.GetSubresource() != "" {
		return nil
	}
	request, ok := a.GetObject().(*projectv1.ProjectRequest)
	if !ok || !isTopLevel(request.Name) || slices.Contains(n.allowed, request.Name) {
		return nil
	}
	return admission.NewForbidden(a, field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf(
		"%q is a top-level domain: names such as example.%[1]s would lead the pods of all projects to this project's services; "+
			"choose another name, such as %[1]s-1, or ask the cluster's administrator to create the project", request.Name)))
}
