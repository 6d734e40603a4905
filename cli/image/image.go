// Package image contains the commands of `oc adm` for images: `prune images` and `prune registry`
// remove unreferenced images and content, and `top images` and `top imagestreams` list images with
// their sizes and users.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, chapters 14 and 19. Flags,
// headings and columns are those of its client.
package image
