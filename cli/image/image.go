// Package image makes the commands of oc for images: `oc adm prune images`, which removes what nothing refers to.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, chapters 14 and 19; flags, headings and columns are those of its client.
package image
