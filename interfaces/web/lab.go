package web

// LabPath is where the lab is.
const LabPath = "/lab"

// The pages of the lab, which is there in demo mode only: its storms cost whoever serves them something. What they show is
// in package lab.
var (
	labParts = Parts("pages/lab-parts.html")

	Lab       = NewPage(files, "pages/lab.html", Style("lab.css"), labParts, Tour())
	LabDesign = NewPage(files, "pages/lab-design.html", Style("lab.css"), labParts, Tour())
	LabPlaces = NewPage(files, "pages/lab-places.html", Style("lab.css"), labParts, Tour())
)
