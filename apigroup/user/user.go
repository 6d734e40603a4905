// Package user serves the API group user.openshift.io: at present groups of users. A group is a
// cluster-wide object with a list of user names; RBAC and SCC refer to it by its name.
//
// Source: OpenShift Container Platform 3.9 Architecture, section on users and groups; the wire type
// is github.com/openshift/api/user/v1.Group.
package user

import (
	userv1 "github.com/openshift/api/user/v1"
	"github.com/slipway-platform/slipway/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Group is the API group as the API server serves it.
func Group() apiserver.Group {
	return apiserver.Group{
		GroupVersion: userv1.GroupVersion,
		Install:      userv1.Install,
		Storage: func(scheme *runtime.Scheme, getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
			groups, err := newGroups(scheme, getter)
			if err != nil {
				return nil, err
			}
			return map[string]rest.Storage{"groups": groups}, nil
		},
	}
}
