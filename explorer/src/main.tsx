import { render } from "preact";
import { App } from "./shell/app";
import { followSearch } from "./search";
import { followTheme } from "./shell/theme";
import { followAddress } from "./state";
import { followSelection } from "./timeline/selection";
import "./styles.css";

followTheme();
followAddress();
followSearch();
followSelection();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
