// Package image makes the commands of `oc adm` for images: `prune images` and `prune registry`,
// which remove what nothing refers to, and `top images` and `top imagestreams`, which tell what is
// used and how much it takes.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, chapters 14 and 19; flags,
// headings and columns are those of its client.
package image
