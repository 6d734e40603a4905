package scc

import (
	"slices"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// descriptionAnnotation is the annotation that describes a constraint's purpose.
const descriptionAnnotation = "kubernetes.io/description"

// BuiltIn returns a new cluster's constraints, sorted by name, with the users and groups that are
// allowed to use them. infrastructure is the namespace of the platform's service accounts
// (openshift-infra).
//
// Source: the seven constraints in OpenShift 3.11 Cluster Administration, 15.2, with the values
// from its two tables, and the constraint that 3.11's monitoring adds. All constraints allow
// `projected`, which only the second table lists. Unlike in OpenShift 3.11, the strict constraints
// also drop NET_RAW.
func BuiltIn(infrastructure string) []*Constraints {
	return []*Constraints{
		anyuid(), hostAccess(), hostMountAnyuid(infrastructure), hostNetwork(),
		nodeExporter(), nonRoot(), privileged(infrastructure), restricted(),
	}
}

// base returns a constraint with the settings of restricted, which is the strictest. The other
// constraints are based on it and allow more.
func base(name, description string) *Constraints {
	c := &Constraints{
		TypeMeta: metav1.TypeMeta{APIVersion: securityv1.GroupVersion.String(), Kind: "SecurityContextConstraints"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{descriptionAnnotation: description},
		},
		AllowedCapabilities: []corev1.Capability{}, DefaultAddCapabilities: []corev1.Capability{},
		// NET_RAW is not in OpenShift 3.11's list. It is dropped here, because programs with file
		// capabilities could otherwise open raw sockets.
		RequiredDropCapabilities: []corev1.Capability{"KILL", "MKNOD", "SYS_CHROOT", "SETUID", "SETGID", "NET_RAW"},
		Volumes: []securityv1.FSType{
			securityv1.FSTypeConfigMap, securityv1.FSTypeDownwardAPI, securityv1.FSTypeEmptyDir,
			securityv1.FSTypePersistentVolumeClaim, securityv1.FSProjected, securityv1.FSTypeSecret,
		},
		RunAsUser:          securityv1.RunAsUserStrategyOptions{Type: securityv1.RunAsUserStrategyMustRunAsRange},
		SELinuxContext:     securityv1.SELinuxContextStrategyOptions{Type: securityv1.SELinuxStrategyMustRunAs},
		FSGroup:            securityv1.FSGroupStrategyOptions{Type: securityv1.FSGroupStrategyMustRunAs},
		SupplementalGroups: securityv1.SupplementalGroupsStrategyOptions{Type: securityv1.SupplementalGroupsStrategyRunAsAny},
	}
	Default(c)
	return c
}

func restricted() *Constraints {
	c := base("restricted", "Denies access to every feature of the host and makes pods run with a user ID and an SELinux label "+
		"that are allocated to the namespace. The most restrictive of the constraints, and the one that all authenticated users have.")
	c.Groups = []string{"system:authenticated"}
	return c
}

func nonRoot() *Constraints {
	c := base("nonroot", "Like restricted, and lets a pod run as any user but root. The pod or its image must name the user by its number.")
	c.RunAsUser.Type = securityv1.RunAsUserStrategyMustRunAsNonRoot
	c.FSGroup.Type = securityv1.FSGroupStrategyRunAsAny
	return c
}

func anyuid() *Constraints {
	c := base("anyuid", "Like restricted, and lets a pod run as any user and with any group, root included.")
	c.Priority = new(int32(10))
	c.RequiredDropCapabilities = []corev1.Capability{"MKNOD", "SYS_CHROOT"}
	c.RunAsUser.Type = securityv1.RunAsUserStrategyRunAsAny
	c.FSGroup.Type = securityv1.FSGroupStrategyRunAsAny
	c.Groups = []string{"system:cluster-admins"}
	return c
}

func hostAccess() *Constraints {
	c := base("hostaccess", "Allows the host's namespaces, network, ports and directories, with a user ID and an SELinux label of the "+
		"namespace. WARNING: a pod with the host's process IDs, file system and network sees what others do; grant it to trusted pods only.")
	hostAll(c)
	volumes(c, securityv1.FSTypeHostPath)
	return c
}

// volumes allows additional volume types.
func volumes(c *Constraints, kinds ...securityv1.FSType) {
	c.Volumes = append(c.Volumes, kinds...)
	slices.Sort(c.Volumes)
}

// hostAll allows all host features.
func hostAll(c *Constraints) {
	c.AllowHostDirVolumePlugin, c.AllowHostNetwork, c.AllowHostPorts, c.AllowHostPID, c.AllowHostIPC = true, true, true, true, true
}

func hostMountAnyuid(infrastructure string) *Constraints {
	c := base("hostmount-anyuid", "Like restricted, and lets a pod mount directories of the host and NFS and run as any user. "+
		"WARNING: root in such a pod is root over the host's files; grant it to trusted pods only.")
	c.RequiredDropCapabilities = []corev1.Capability{"MKNOD", "SYS_CHROOT"}
	c.AllowHostDirVolumePlugin = true
	volumes(c, securityv1.FSTypeHostPath, securityv1.FSTypeNFS)
	c.RunAsUser.Type = securityv1.RunAsUserStrategyRunAsAny
	c.FSGroup.Type = securityv1.FSGroupStrategyRunAsAny
	c.Users = []string{"system:serviceaccount:" + infrastructure + ":pv-recycler-controller"}
	return c
}

func hostNetwork() *Constraints {
	c := base("hostnetwork", "Like restricted, and lets a pod use the host's network and ports, with a group of the namespace.")
	c.AllowHostNetwork, c.AllowHostPorts = true, true
	c.SupplementalGroups.Type = securityv1.SupplementalGroupsStrategyMustRunAs
	return c
}

func nodeExporter() *Constraints {
	c := base("node-exporter", "For the pods that export the metrics of nodes: the host's network, ports, process IDs and directories, "+
		"as any user, without privileged containers.")
	c.AllowHostDirVolumePlugin, c.AllowHostNetwork, c.AllowHostPorts, c.AllowHostPID = true, true, true, true
	c.RequiredDropCapabilities = []corev1.Capability{}
	anyContext(c)
	c.Users = []string{"system:serviceaccount:openshift-monitoring:node-exporter"}
	return c
}

func privileged(infrastructure string) *Constraints {
	c := base("privileged", "Allows every feature of the host, any user, group and SELinux label, all capabilities and privileged containers. "+
		"WARNING: the most relaxed of the constraints; grant it for administration of the cluster only.")
	hostAll(c)
	c.AllowPrivilegedContainer = true
	c.AllowedCapabilities = []corev1.Capability{securityv1.AllowAllCapabilities}
	c.RequiredDropCapabilities = []corev1.Capability{}
	c.SeccompProfiles = []string{profileAny}
	c.AllowedUnsafeSysctls = []string{"*"}
	anyContext(c)
	c.Users = []string{
		"system:serviceaccount:default:registry", "system:serviceaccount:default:router",
		"system:serviceaccount:" + infrastructure + ":build-controller",
	}
	c.Groups = []string{"system:cluster-admins", "system:nodes"}
	return c
}

// anyContext allows all volumes, users, groups and labels.
func anyContext(c *Constraints) {
	c.Volumes = []securityv1.FSType{securityv1.FSTypeAll}
	c.RunAsUser.Type = securityv1.RunAsUserStrategyRunAsAny
	c.SELinuxContext.Type = securityv1.SELinuxStrategyRunAsAny
	c.FSGroup.Type = securityv1.FSGroupStrategyRunAsAny
}
