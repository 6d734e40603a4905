package describe

import (
	"fmt"
	"slices"
	"strings"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// role writes a role or a cluster role. It formats the rules as OpenShift 3's client does.
func role(p *page, r *authorizationv1.Role) error {
	p.metadata(r.ObjectMeta)
	p.line("Verbs\tNon-Resource URLs\tResource Names\tAPI Groups\tResources")
	for _, rule := range r.Rules {
		p.line("%v\t%v\t%v\t%v\t%v", rule.Verbs, rule.NonResourceURLsSlice, rule.ResourceNames, rule.APIGroups, rule.Resources)
	}
	return nil
}

// roleBinding writes a role binding or a cluster role binding.
func roleBinding(p *page, b *authorizationv1.RoleBinding) error {
	p.metadata(b.ObjectMeta)
	p.field("Role", b.RoleRef.Namespace+"/"+b.RoleRef.Name)
	of := map[string][]string{}
	for _, s := range b.Subjects {
		name := s.Name
		if s.Kind == "ServiceAccount" {
			name = s.Namespace + "/" + name
		}
		of[s.Kind] = append(of[s.Kind], name)
	}
	p.list("Users", slices.Concat(of["User"], of["SystemUser"]))
	p.list("Groups", slices.Concat(of["Group"], of["SystemGroup"]))
	p.list("ServiceAccounts", of["ServiceAccount"])
	return nil
}

// restriction writes the subjects that a project's role bindings can contain.
func restriction(p *page, r *authorizationv1.RoleBindingRestriction) error {
	p.metadata(r.ObjectMeta)
	selectors := func(list []metav1.LabelSelector) (all []string) {
		for i := range list {
			all = append(all, metav1.FormatLabelSelector(&list[i]))
		}
		return all
	}
	switch {
	case r.Spec.UserRestriction != nil:
		p.field("Subject Type", "User")
		p.list("Users", r.Spec.UserRestriction.Users)
		p.list("Users in Groups", r.Spec.UserRestriction.Groups)
		p.lines("User Labels", selectors(r.Spec.UserRestriction.Selectors))
	case r.Spec.GroupRestriction != nil:
		p.field("Subject Type", "Group")
		p.list("Groups", r.Spec.GroupRestriction.Groups)
		p.lines("Group Labels", selectors(r.Spec.GroupRestriction.Selectors))
	case r.Spec.ServiceAccountRestriction != nil:
		p.field("Subject Type", "ServiceAccount")
		var accounts []string
		for _, account := range r.Spec.ServiceAccountRestriction.ServiceAccounts {
			if account.Namespace == "" {
				account.Namespace = r.Namespace
			}
			accounts = append(accounts, account.Namespace+"/"+account.Name)
		}
		p.list("Service Accounts", accounts)
		p.list("Namespaces", r.Spec.ServiceAccountRestriction.Namespaces)
	}
	return nil
}

// constraints writes SecurityContextConstraints.
func constraints(p *page, c *securityv1.SecurityContextConstraints) error {
	p.field("Name", c.Name)
	p.field("Priority", optional(c.Priority))
	p.line("Access:\t")
	p.list("  Users", c.Users)
	p.list("  Groups", c.Groups)
	p.line("Settings:\t")
	p.field("  Allow Privileged", c.AllowPrivilegedContainer)
	p.field("  Allow Privilege Escalation", optional(c.AllowPrivilegeEscalation))
	p.list("  Default Add Capabilities", texts(c.DefaultAddCapabilities))
	p.list("  Required Drop Capabilities", texts(c.RequiredDropCapabilities))
	p.list("  Allowed Capabilities", texts(c.AllowedCapabilities))
	p.list("  Allowed Seccomp Profiles", c.SeccompProfiles)
	p.list("  Allowed Volume Types", texts(c.Volumes))
	var drivers []string
	for _, volume := range c.AllowedFlexVolumes {
		drivers = append(drivers, "driver="+volume.Driver)
	}
	if slices.Contains(c.Volumes, securityv1.FSTypeFlexVolume) || slices.Contains(c.Volumes, securityv1.FSTypeAll) {
		if len(drivers) == 0 {
			drivers = []string{"<all>"}
		}
		p.list("  Allowed Flexvolumes", drivers)
	}
	p.list("  Allowed Unsafe Sysctls", c.AllowedUnsafeSysctls)
	p.list("  Forbidden Sysctls", c.ForbiddenSysctls)
	p.field("  Allow Host Network", c.AllowHostNetwork)
	p.field("  Allow Host Ports", c.AllowHostPorts)
	p.field("  Allow Host PID", c.AllowHostPID)
	p.field("  Allow Host IPC", c.AllowHostIPC)
	p.field("  Read Only Root Filesystem", c.ReadOnlyRootFilesystem)
	strategies(p, c)
	return nil
}

// strategies writes the user, SELinux and group strategies of SecurityContextConstraints.
func strategies(p *page, c *securityv1.SecurityContextConstraints) {
	p.line("  Run As User Strategy: %s\t", c.RunAsUser.Type)
	p.field("    UID", optional(c.RunAsUser.UID))
	p.field("    UID Range Min", optional(c.RunAsUser.UIDRangeMin))
	p.field("    UID Range Max", optional(c.RunAsUser.UIDRangeMax))
	p.line("  SELinux Context Strategy: %s\t", c.SELinuxContext.Type)
	label := corev1.SELinuxOptions{}
	if c.SELinuxContext.SELinuxOptions != nil {
		label = *c.SELinuxContext.SELinuxOptions
	}
	p.field("    User", label.User)
	p.field("    Role", label.Role)
	p.field("    Type", label.Type)
	p.field("    Level", label.Level)
	p.line("  FSGroup Strategy: %s\t", c.FSGroup.Type)
	p.field("    Ranges", ranges(c.FSGroup.Ranges))
	p.line("  Supplemental Groups Strategy: %s\t", c.SupplementalGroups.Type)
	p.field("    Ranges", ranges(c.SupplementalGroups.Ranges))
}

func ranges(list []securityv1.IDRange) string {
	var all []string
	for _, idRange := range list {
		all = append(all, fmt.Sprintf("%d-%d", idRange.Min, idRange.Max))
	}
	return strings.Join(all, ",")
}
