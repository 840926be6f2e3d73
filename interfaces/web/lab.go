package web

// The pages of the lab. What they show is in package lab.
var (
	labParts = Parts("pages/lab-parts.html")

	Lab       = NewPage(files, "pages/lab.html", Style("lab.css"), labParts)
	LabDesign = NewPage(files, "pages/lab-design.html", Style("lab.css"), labParts)
	LabPlaces = NewPage(files, "pages/lab-places.html", Style("lab.css"), labParts)
)
