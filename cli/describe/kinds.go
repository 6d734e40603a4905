package describe

import (
	appsv1 "github.com/openshift/api/apps/v1"
	authorizationv1 "github.com/openshift/api/authorization/v1"
	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	networkv1 "github.com/openshift/api/network/v1"
	oauthv1 "github.com/openshift/api/oauth/v1"
	projectv1 "github.com/openshift/api/project/v1"
	quotav1 "github.com/openshift/api/quota/v1"
	routev1 "github.com/openshift/api/route/v1"
	securityv1 "github.com/openshift/api/security/v1"
	templatev1 "github.com/openshift/api/template/v1"
	userv1 "github.com/openshift/api/user/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinds returns the writers for OpenShift's kinds. kubectl describes all other kinds.
func kinds() map[schema.GroupKind]writer {
	return map[schema.GroupKind]writer{
		{Group: projectv1.GroupName, Kind: "Project"}: of(project),

		{Group: userv1.GroupName, Kind: "User"}:                of(user),
		{Group: userv1.GroupName, Kind: "Identity"}:            of(identity),
		{Group: userv1.GroupName, Kind: "Group"}:               of(group),
		{Group: userv1.GroupName, Kind: "UserIdentityMapping"}: of(mapping),

		{Group: oauthv1.GroupName, Kind: "OAuthClient"}:              of(oauthClient),
		{Group: oauthv1.GroupName, Kind: "OAuthClientAuthorization"}: of(clientAuthorization),
		{Group: oauthv1.GroupName, Kind: "OAuthAccessToken"}:         of(accessToken),
		{Group: oauthv1.GroupName, Kind: "UserOAuthAccessToken"}:     of(accessToken),
		{Group: oauthv1.GroupName, Kind: "OAuthAuthorizeToken"}:      of(authorizeToken),

		{Group: authorizationv1.GroupName, Kind: "Role"}:                   of(role),
		{Group: authorizationv1.GroupName, Kind: "ClusterRole"}:            of(role),
		{Group: authorizationv1.GroupName, Kind: "RoleBinding"}:            of(roleBinding),
		{Group: authorizationv1.GroupName, Kind: "ClusterRoleBinding"}:     of(roleBinding),
		{Group: authorizationv1.GroupName, Kind: "RoleBindingRestriction"}: of(restriction),

		{Group: securityv1.GroupName, Kind: "SecurityContextConstraints"}: of(constraints),

		{Group: appsv1.GroupName, Kind: "DeploymentConfig"}: of(deploymentConfig),
		{Group: buildv1.GroupName, Kind: "BuildConfig"}:     of(buildConfig),
		{Group: buildv1.GroupName, Kind: "Build"}:           of(build),
		{Group: imagev1.GroupName, Kind: "ImageStream"}:     of(imageStream),
		{Group: imagev1.GroupName, Kind: "ImageStreamTag"}:  of(imageStreamTag),
		{Group: imagev1.GroupName, Kind: "ImageStreamImage"}: of(func(p *page, i *imagev1.ImageStreamImage) error {
			return image(p, &i.Image)
		}),
		{Group: imagev1.GroupName, Kind: "Image"}:               of(image),
		{Group: routev1.GroupName, Kind: "Route"}:               of(route),
		{Group: templatev1.GroupName, Kind: "Template"}:         of(template),
		{Group: templatev1.GroupName, Kind: "TemplateInstance"}: of(templateInstance),

		{Group: quotav1.GroupName, Kind: "ClusterResourceQuota"}:        of(clusterQuota),
		{Group: quotav1.GroupName, Kind: "AppliedClusterResourceQuota"}: of(clusterQuota),

		{Group: networkv1.GroupName, Kind: "NetNamespace"}:        of(netNamespace),
		{Group: networkv1.GroupName, Kind: "HostSubnet"}:          of(hostSubnet),
		{Group: networkv1.GroupName, Kind: "ClusterNetwork"}:      of(clusterNetwork),
		{Group: networkv1.GroupName, Kind: "EgressNetworkPolicy"}: of(egressPolicy),
	}
}
