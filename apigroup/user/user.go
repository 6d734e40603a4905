// Package user serves the API group user.openshift.io: at present groups of users. A group is a
// cluster-wide object with a list of user names; RBAC and SCC refer to it by its name.
//
// Source: OpenShift Container Platform 3.9 Architecture, section on users and groups; the wire type
// is github.com/openshift/api/user/v1.Group.
package user

import (
	userv1 "github.com/openshift/api/user/v1"
	"github.com/slipway-platform/slipway/apiserver"
)

// Feature is the API group as the API server serves it.
func Feature() apiserver.Feature {
	return apiserver.Feature{Groups: []apiserver.Group{{
		GroupVersion: userv1.GroupVersion,
		Install:      userv1.Install,
		Resources:    []apiserver.Served{groups()},
	}}}
}
