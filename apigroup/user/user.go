// Package user serves the API group user.openshift.io: users, their identities at identity
// providers, the mappings between users and identities, and user groups. RBAC and security context
// constraints refer to users and groups by name.
//
// Source: OpenShift Container Platform 3.9 Architecture, 4.8.1; 3.11 Cluster Administration,
// chapter 5. The wire types are defined in github.com/openshift/api/user/v1.
package user

import (
	userv1 "github.com/openshift/api/user/v1"

	"github.com/slipway-platform/slipway/apiserver"
)

// Feature returns the user.openshift.io API group so that it can be registered with the API server.
func Feature() apiserver.Feature {
	return apiserver.Feature{Groups: []apiserver.Group{{
		GroupVersion: userv1.GroupVersion,
		Install:      userv1.Install,
		Legacy:       userv1.DeprecatedInstallWithoutGroup,
		Resources:    []apiserver.Served{users(), identities(), mappings(), groups()},
	}}}
}
