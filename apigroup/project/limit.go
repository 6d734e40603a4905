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

// LimitPluginName is the admission plugin that limits how many projects a user may request.
const LimitPluginName = "ProjectRequestLimit"

// LimitConfig is the configuration of ProjectRequestLimit.
type LimitConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Limits are tried in order; the first whose selector matches the user's labels counts.
	Limits []Limit `json:"limits"`
	// MaxProjectsForSystemUsers limits users whose names begin with system:, without a limit when it is nil.
	MaxProjectsForSystemUsers *int `json:"maxProjectsForSystemUsers"`
	// MaxProjectsForServiceAccounts limits each service account, without a limit when it is nil.
	MaxProjectsForServiceAccounts *int `json:"maxProjectsForServiceAccounts"`
}

// Limit is the most projects for the users with some labels.
type Limit struct {
	// Selector are the labels of the users; without it all users are meant.
	Selector map[string]string `json:"selector"`
	// MaxProjects is the most projects, without a limit when it is nil.
	MaxProjects *int `json:"maxProjects"`
}

// limit is the plugin.
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
	for i, one := range l.config.Limits {
		if one.MaxProjects != nil && *one.MaxProjects < 0 {
			return nil, fmt.Errorf("read configuration of %s: limits[%d].maxProjects is %d, must not be negative", LimitPluginName, i, *one.MaxProjects)
		}
	}
	return l, nil
}

// Validate refuses a request of someone who has requested as many projects as are allowed.
func (l *limit) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != projectv1.Resource("projectrequests") || a.GetSubresource() != "" {
		return nil
	}
	most := l.most(ctx, a.GetUserInfo())
	if most == nil {
		return nil
	}
	has, err := l.count(a.GetUserInfo().GetName())
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if has >= *most {
		return admission.NewForbidden(a, fmt.Errorf("user %s cannot create more than %d project(s)", a.GetUserInfo().GetName(), *most))
	}
	return nil
}

// most is the limit of a user, nil when there is none.
func (l *limit) most(ctx context.Context, who user.Info) *int {
	if _, _, err := serviceaccount.SplitUsername(who.GetName()); err == nil && l.config.MaxProjectsForServiceAccounts != nil {
		return l.config.MaxProjectsForServiceAccounts
	} else if err == nil {
		return nil
	}
	if strings.HasPrefix(who.GetName(), "system:") {
		return l.config.MaxProjectsForSystemUsers
	}
	own := labels.Set{}
	if store := l.feature.deps.Stores[userv1.Resource("users")]; store != nil {
		if found, err := store.Get(ctx, who.GetName(), &metav1.GetOptions{}); err == nil {
			own = found.(*userv1.User).Labels
		}
	}
	for _, one := range l.config.Limits {
		if labels.SelectorFromSet(one.Selector).Matches(own) {
			return one.MaxProjects
		}
	}
	return nil
}

// count is the number of projects that a user has requested and that are not being deleted.
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
