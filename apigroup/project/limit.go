package project

import (
	"context"
	"fmt"
	"io"
	"strings"

	projectv1 "github.com/openshift/api/project/v1"
	userv1 "github.com/openshift/api/user/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/slipway-platform/slipway/apiserver"
)

// LimitPluginName is the name of the admission plugin that limits the number of projects that a
// user can request.
const LimitPluginName = "ProjectRequestLimit"

// LimitConfig is the configuration of ProjectRequestLimit.
type LimitConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Limits are evaluated in order. The first limit whose selector matches the user's labels
	// applies.
	Limits []Limit `json:"limits"`
	// MaxProjectsForSystemUsers is the maximum number of projects for each user whose name begins
	// with system:, except service accounts. nil means no limit.
	MaxProjectsForSystemUsers *int `json:"maxProjectsForSystemUsers"`
	// MaxProjectsForServiceAccounts is the maximum number of projects for each service account. nil
	// means no limit.
	MaxProjectsForServiceAccounts *int `json:"maxProjectsForServiceAccounts"`
}

// Limit is the maximum number of projects for users with certain labels.
type Limit struct {
	// Selector selects users by their labels. An empty selector selects all users.
	Selector map[string]string `json:"selector"`
	// MaxProjects is the maximum number of projects. nil means no limit.
	MaxProjects *int `json:"maxProjects"`
}

// limit is the ProjectRequestLimit admission plugin.
type limit struct {
	*admission.Handler
	feature *feature
	config  LimitConfig
}

var _ admission.ValidationInterface = &limit{}

func newLimit(f *feature, config io.Reader) (*limit, error) {
	l := &limit{Handler: admission.NewHandler(admission.Create), feature: f}
	if err := apiserver.DecodeConfig(config, "ProjectRequestLimitConfig", &l.config); err != nil {
		return nil, fmt.Errorf("read configuration of %s: %w", LimitPluginName, err)
	}
	for i, limit := range l.config.Limits {
		if limit.MaxProjects != nil && *limit.MaxProjects < 0 {
			return nil, fmt.Errorf("read configuration of %s: limits[%d].maxProjects is %d, must not be negative", LimitPluginName, i, *limit.MaxProjects)
		}
	}
	return l, nil
}

// Validate rejects a project request if its user has reached the limit.
func (l *limit) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != projectv1.Resource("projectrequests") || a.GetSubresource() != "" {
		return nil
	}
	maximum := l.maxProjects(ctx, a.GetUserInfo())
	if maximum == nil {
		return nil
	}
	count, err := l.count(a.GetUserInfo().GetName())
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if count >= *maximum {
		return admission.NewForbidden(a, fmt.Errorf("user %s cannot create more than %d project(s)", a.GetUserInfo().GetName(), *maximum))
	}
	return nil
}

// maxProjects returns the maximum number of projects for a user, or nil if there is no limit.
func (l *limit) maxProjects(ctx context.Context, u user.Info) *int {
	if _, _, err := serviceaccount.SplitUsername(u.GetName()); err == nil && l.config.MaxProjectsForServiceAccounts != nil {
		return l.config.MaxProjectsForServiceAccounts
	} else if err == nil {
		return nil
	}
	if strings.HasPrefix(u.GetName(), "system:") {
		return l.config.MaxProjectsForSystemUsers
	}
	set := labels.Set{}
	if store := l.feature.deps.Stores[userv1.Resource("users")]; store != nil {
		if object, err := store.Get(ctx, u.GetName(), &metav1.GetOptions{}); err == nil {
			set = object.(*userv1.User).Labels
		}
	}
	for _, limit := range l.config.Limits {
		if labels.SelectorFromSet(limit.Selector).Matches(set) {
			return limit.MaxProjects
		}
	}
	return nil
}

// count returns the number of projects that a user has requested. It does not count projects that
// are being deleted.
func (l *limit) count(name string) (int, error) {
	namespaces, err := l.feature.observer.namespaces.List(labels.Everything())
	if err != nil {
		return 0, err
	}
	count := 0
	for _, namespace := range namespaces {
		if namespace.Annotations[requesterAnnotation] == name && namespace.DeletionTimestamp == nil {
			count++
		}
	}
	return count, nil
}
