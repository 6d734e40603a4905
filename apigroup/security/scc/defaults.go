package scc

import (
	"slices"

	securityv1 "github.com/openshift/api/security/v1"
)

// Default sets a constraint's defaults: missing strategies allow everything, lists of users and
// groups are never null, and the volume list is consistent with allowHostDirVolumePlugin.
func Default(c *Constraints) {
	if c.Users == nil {
		c.Users = []string{}
	}
	if c.Groups == nil {
		c.Groups = []string{}
	}
	if c.FSGroup.Type == "" {
		c.FSGroup.Type = securityv1.FSGroupStrategyRunAsAny
	}
	if c.SupplementalGroups.Type == "" {
		c.SupplementalGroups.Type = securityv1.SupplementalGroupsStrategyRunAsAny
	}
	if c.AllowPrivilegeEscalation == nil {
		c.AllowPrivilegeEscalation = new(true)
	}
	defaultVolumes(c)
}

// defaultVolumes sets the volume list to all types if a constraint has no list. Whether the list
// includes host directories depends on allowHostDirVolumePlugin, which is older than the list.
func defaultVolumes(c *Constraints) {
	switch {
	case c.Volumes == nil && c.AllowHostDirVolumePlugin:
		c.Volumes = []securityv1.FSType{securityv1.FSTypeAll}
	case c.Volumes == nil:
		c.Volumes = slices.DeleteFunc(volumeTypes(), isHostPath)
	case !c.AllowHostDirVolumePlugin && slices.Contains(c.Volumes, securityv1.FSTypeAll):
		c.Volumes = slices.DeleteFunc(volumeTypes(), isHostPath)
	case !c.AllowHostDirVolumePlugin:
		c.Volumes = slices.DeleteFunc(c.Volumes, isHostPath)
	case !slices.Contains(c.Volumes, securityv1.FSTypeAll) && !slices.ContainsFunc(c.Volumes, isHostPath):
		c.Volumes = append(slices.DeleteFunc(c.Volumes, isNone), securityv1.FSTypeHostPath)
	}
}

func isHostPath(kind securityv1.FSType) bool { return kind == securityv1.FSTypeHostPath }

func isNone(kind securityv1.FSType) bool { return kind == securityv1.FSTypeNone }
